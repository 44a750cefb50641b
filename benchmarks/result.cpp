// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "result.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <kzero/error.hpp>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

namespace kzero::bench {

namespace {

using Row = std::array<std::string, 6>;

std::string three_decimals(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

Row row_of(const Result& result) {
  if (!result.absent.empty())
    return {result.name, result.what, result.absent, "", "", ""};
  const char* sign = result.goal == Goal::at_least ? ">= " : "<= ";
  return {result.name,
          result.what,
          three_decimals(result.ratio),
          three_decimals(result.spread),
          sign + three_decimals(result.target),
          result.met() ? "yes" : "no"};
}

void print_table(std::ostream& out, const std::vector<Result>& results) {
  std::vector<Row> rows = {
      {"case", "what", "ratio", "spread", "target", "met"}};
  for (const Result& result : results) rows.push_back(row_of(result));
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      const bool is_number = i >= 2 && i <= 4;
      if (i > 0) line += "  ";
      line += is_number ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

void print_json(std::ostream& out, const std::vector<Result>& results) {
  for (const Result& result : results) {
    nlohmann::ordered_json line = {{"case", result.name},
                                   {"what", result.what}};
    if (result.absent.empty()) {
      line["ratio"] = result.ratio;
      line["spread"] = result.spread;
      line["goal"] = result.goal == Goal::at_least ? "at_least" : "at_most";
      line["target"] = result.target;
      line["met"] = result.met();
    } else {
      line["absent"] = result.absent;
    }
    out << line << '\n';
  }
}

}  // namespace

bool Result::met() const {
  if (!absent.empty()) return false;
  return goal == Goal::at_least ? ratio >= target : ratio <= target;
}

Result summarize(std::string name, std::string what, std::vector<double> ratios,
                 Goal goal, double target) {
  if (ratios.empty()) {
    throw InvalidArgument("no ratios of " + name +
                          " to sum up: measure one round at least");
  }
  std::sort(ratios.begin(), ratios.end());
  const std::size_t middle = ratios.size() / 2;
  const double median = ratios.size() % 2 == 1
                            ? ratios[middle]
                            : (ratios[middle - 1] + ratios[middle]) / 2;
  const double spread = (ratios.back() - ratios.front()) / median;
  return {std::move(name), std::move(what), median, spread, goal, target};
}

Result not_installed(std::string name, std::string what) {
  Result result{std::move(name), std::move(what)};
  result.absent = "not installed";
  return result;
}

void Report::add(Result result) { results_.push_back(std::move(result)); }

void Report::print(std::ostream& out, Format format) const {
  if (format == Format::json) {
    print_json(out, results_);
  } else if (!results_.empty()) {
    print_table(out, results_);
  }
}

}  // namespace kzero::bench
