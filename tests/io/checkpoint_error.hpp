// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Looks into the messages of errors.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <kzero/error.hpp>
#include <string>

namespace kzero::test {

inline const std::string no_error = "no error";

/// The message of the CheckpointError that f throws, or no_error.
template <class F>
std::string checkpoint_error(F&& f) {
  try {
    f();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return no_error;
}

/// Whether the text has all the parts.
inline testing::AssertionResult says(const std::string& text,
                                     std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    if (text.find(part) == std::string::npos)
      return testing::AssertionFailure() << "no '" << part << "' in: " << text;
  return testing::AssertionSuccess();
}

}  // namespace kzero::test
