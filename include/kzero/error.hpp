// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The exceptions of kzero. Messages read "problem (where, expected, got):
// what to do". An error found by a collective call is thrown on every rank.
#pragma once

#include <stdexcept>

namespace kzero {

/// Base of every exception that kzero throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A wrong call: bad option, unknown parameter, ranks that disagree.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A collective failed or timed out. The communicator is unusable afterwards.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint could not be written, read or matched to the model.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// Gradients were not finite for as many steps in a row as the option
/// Nonfinite::throw_after allows.
class NonfiniteError : public Error {
 public:
  using Error::Error;
};

}  // namespace kzero
