// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Measures where time goes.
#pragma once

#include <chrono>

namespace kzero::detail {

/// Adds the seconds of a scope to a sum.
class AddSeconds {
 public:
  explicit AddSeconds(double& sum) : sum_(sum) {}
  ~AddSeconds() {
    sum_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_)
            .count();
  }
  AddSeconds(const AddSeconds&) = delete;
  AddSeconds& operator=(const AddSeconds&) = delete;

 private:
  double& sum_;
  std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
};

}  // namespace kzero::detail
