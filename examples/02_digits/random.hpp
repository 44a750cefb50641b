// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Random numbers that are the same on every machine, rank and rank count
// (std::shuffle and the distributions of <random> differ between libraries).
#pragma once

#include <cstdint>

namespace digits {

/// SplitMix64 (Steele, Lea and Flood, 2014), started from two numbers.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream)
      : state_(mix(seed) ^ mix(~stream)) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }

  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// In [0, bound). Its bias, below bound / 2^64, does not matter here.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace digits
