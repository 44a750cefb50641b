// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "result.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace kzero::bench {
namespace {

/// Between the two nearest values. values are sorted and not empty.
double quantile(const std::vector<double>& values, double part) {
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] +
         (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

double spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
}

void print_json(std::span<const Result> results) {
  for (const Result& result : results) {
    const nlohmann::ordered_json line = {
        {"case", result.name},     {"what", result.what},
        {"ratio", result.ratio},   {"spread", result.spread},
        {"target", result.target}, {"met", result.met()}};
    std::printf("%s\n", line.dump().c_str());
  }
}

void print_table(std::span<const Result> results) {
  std::size_t width = 4;
  for (const Result& result : results)
    width = std::max(width, result.what.size());
  std::printf("%-4s  %-*s  %7s  %7s  %9s  met\n", "case", int(width), "what",
              "ratio", "spread", "target");
  for (const Result& result : results)
    std::printf("%-4s  %-*s  %7.3f  %7.3f  %s %6.2f  %s\n", result.name.c_str(),
                int(width), result.what.c_str(), result.ratio, result.spread,
                result.smaller_is_better ? "<=" : ">=", result.target,
                result.met() ? "yes" : "no");
}

}  // namespace kzero::bench
