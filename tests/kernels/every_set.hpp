// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What tests of kernels share.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

#include "kernels/kernels.hpp"

namespace kzero::detail {

/// Runs the test body once for each instruction set of this machine.
class EverySet : public testing::Test {
 public:
  ~EverySet() override { use_instruction_set(instruction_sets().back()); }

  template <class F>
  static void for_each_set(F&& body) {
    for (std::string_view name : instruction_sets()) {
      SCOPED_TRACE(name);
      use_instruction_set(name);
      body();
    }
  }
};

template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(generator));
  return values;
}

}  // namespace kzero::detail
