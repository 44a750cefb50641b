// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Random numbers that ranks share: what one of them does, all can know.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

#include "core/hash.hpp"

namespace kzero::test {

/// The same on every rank that begins with the same numbers.
class Dice {
 public:
  Dice(std::initializer_list<unsigned> numbers)
      : random_(static_cast<std::uint_fast32_t>(
            detail::hash(numbers.begin(), numbers.size() * sizeof(unsigned)) %
            2147483647u)) {}
  /// 0 to n - 1.
  int roll(int n) { return static_cast<int>(random_() / 7 % unsigned(n)); }
  bool one_in(int n) { return roll(n) == 0; }
  std::minstd_rand& engine() { return random_; }

 private:
  std::minstd_rand random_;
};

}  // namespace kzero::test
