// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Errors that one rank finds and every rank must know about.
#pragma once

#include <exception>
#include <kzero/communicator.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace digits {

/// A mistake that the user can mend. Thrown on every rank alike, so that rank
/// 0 can print it once and all ranks can end.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Collective. Throws UserError on every rank when rank 0's problem is not
/// empty.
void agree(kzero::Communicator& communicator, std::string problem);

/// Collective. Calls f on rank 0; what it throws becomes a UserError on every
/// rank. Without this a rank that fails leaves the others waiting.
template <class F>
void on_rank_0(kzero::Communicator& communicator, F&& f) {
  std::string problem;
  if (communicator.rank() == 0) {
    try {
      std::forward<F>(f)();
    } catch (const std::exception& error) {
      problem = error.what();
      if (problem.empty()) problem = "unknown error";
    }
  }
  agree(communicator, std::move(problem));
}

}  // namespace digits
