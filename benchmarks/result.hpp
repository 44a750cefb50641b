// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a case of the suite has found. A figure is a ratio, taken side by side
// in one run.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kzero::bench {

struct Result {
  std::string name;     // of the case: "O1"
  std::string what;     // over what
  double ratio = 0.0;   // median over the rounds
  double spread = 0.0;  // half the distance between the quartiles
  double target = 0.0;
  bool smaller_is_better = true;

  bool met() const {
    return smaller_is_better ? ratio <= target : ratio >= target;
  }
};

double median(std::vector<double> values);
double spread(std::vector<double> values);

/// One JSON object a line: case, what, ratio, spread, target, met.
void print_json(std::span<const Result> results);
void print_table(std::span<const Result> results);

}  // namespace kzero::bench
