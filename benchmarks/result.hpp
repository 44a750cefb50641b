// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a benchmark finds: ratios of times that were measured side by side in
// one run, so that they say the same on every machine.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace kzero::bench {

enum class Goal { at_least, at_most };

struct Result {
  std::string name;  // of the case
  std::string what;  // is divided by what
  double ratio = 0;
  double spread = 0;
  Goal goal = Goal::at_least;
  double target = 0;
  /// Why there is no ratio; empty where there is one.
  std::string absent = {};

  /// Not for a ratio that is no number.
  bool met() const;
};

/// The median of what the rounds of a run gave; the spread is the largest less
/// the smallest, as a part of the median. Throws InvalidArgument without
/// rounds.
Result summarize(std::string name, std::string what, std::vector<double> ratios,
                 Goal goal, double target);

/// A peer that this machine does not have.
Result not_installed(std::string name, std::string what);

enum class Format { table, json };

class Report {
 public:
  void add(Result result);

  /// An aligned table, or one JSON object a line with case, what, ratio,
  /// spread, goal, target and met; or with case, what and absent.
  void print(std::ostream& out, Format format) const;

 private:
  std::vector<Result> results_;
};

}  // namespace kzero::bench
