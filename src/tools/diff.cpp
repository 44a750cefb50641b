// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero diff A B
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/json_node.hpp"
#include "tools/commands.hpp"
#include "tools/elements.hpp"
#include "tools/progress.hpp"

namespace kzero::tools {
namespace {

using detail::ArrayIndex;
using detail::CheckpointReader;
using detail::Json;

struct DiffOptions {
  std::string a;
  std::string b;
  double absolute = 0;
  double relative = 0;
};

/// Of one array that both have.
struct Difference {
  std::string array;
  std::int64_t count = 0;
  std::int64_t first = 0;  // element, in C order
  double in_a = 0;
  double in_b = 0;
  double largest = 0;
};

class Diff {
 public:
  explicit Diff(const DiffOptions& options)
      : options_(options), a_(options.a), b_(options.b) {}

  void run() {
    const auto in_b = arrays_of(b_);
    Progress progress("diff", a_.bytes());
    for (const auto& [name, index] : arrays_of(a_)) {
      const auto other = in_b.find(name);
      if (other == in_b.end()) {
        words_.push_back(printable(name) + " is in the first file alone");
        continue;
      }
      compare(name, index, other->second);
      const auto& parameter = a_.layout().parameters[index.parameter];
      progress.add(
          detail::array_bytes(parameter, parameter.arrays[index.array].dtype));
    }
    for (const auto& [name, index] : in_b)
      if (!arrays_of(a_).contains(name))
        words_.push_back(printable(name) + " is in the second file alone");
    compare_steps();
  }

  bool is_same() const { return words_.empty() && differences_.empty(); }

  void print() const {
    for (const std::string& each : words_) std::cout << each << '\n';
    for (const Difference& each : differences_)
      std::cout << printable(each.array) << ": " << each.count
                << " elements differ, by " << number_text(each.largest)
                << " at most; the first is element " << each.first << ": "
                << number_text(each.in_a) << ", " << number_text(each.in_b)
                << '\n';
    if (is_same()) std::cout << "no difference\n";
  }

  Json json() const {
    Json differences = Json::array();
    for (const Difference& each : differences_)
      differences.push_back({{"array", printable(each.array)},
                             {"count", each.count},
                             {"first", each.first},
                             {"a", detail::json_of(each.in_a)},
                             {"b", detail::json_of(each.in_b)},
                             {"largest", detail::json_of(each.largest)}});
    return {{"same", is_same()},
            {"other", words_},
            {"differences", std::move(differences)}};
  }

 private:
  static std::map<std::string, ArrayIndex> arrays_of(
      const CheckpointReader& reader) {
    std::map<std::string, ArrayIndex> arrays;
    const auto& parameters = reader.layout().parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (std::size_t k = 0; k < parameters[i].arrays.size(); ++k)
        arrays[parameters[i].name + "/" + parameters[i].arrays[k].name] = {i,
                                                                           k};
    return arrays;
  }

  void compare_steps() {
    const std::int64_t a = a_.layout().content.step;
    const std::int64_t b = b_.layout().content.step;
    if (a != b) words_.push_back(detail::concat("steps: ", a, " and ", b));
  }

  void compare(const std::string& name, ArrayIndex in_a, ArrayIndex in_b) {
    const auto& a = a_.layout().parameters[in_a.parameter];
    const auto& b = b_.layout().parameters[in_b.parameter];
    if (a.extents != b.extents) {
      words_.push_back(detail::concat(printable(name), " has the shape ",
                                      shape_text(a.extents), " and ",
                                      shape_text(b.extents)));
      return;
    }
    const DType type_a = a.arrays[in_a.array].dtype;
    const DType type_b = b.arrays[in_b.array].dtype;
    if (type_a != type_b)
      words_.push_back(detail::concat(printable(name), " is ",
                                      to_string(type_a), " and ",
                                      to_string(type_b)));
    // One array whole, the other piece by piece.
    std::vector<double> whole;
    for_each_piece(a_, in_a, [&](std::int64_t, std::span<const double> some) {
      whole.insert(whole.end(), some.begin(), some.end());
    });
    Difference difference{name};
    for_each_piece(
        b_, in_b, [&](std::int64_t first, std::span<const double> some) {
          for (std::size_t i = 0; i < some.size(); ++i)
            compare(difference, first + static_cast<std::int64_t>(i),
                    whole[static_cast<std::size_t>(first) + i], some[i]);
        });
    if (difference.count > 0) differences_.push_back(difference);
  }

  void compare(Difference& difference, std::int64_t element, double a,
               double b) const {
    const double distance = std::abs(a - b);
    // NaN and NaN are the same, infinities of one sign too.
    if (a == b || (std::isnan(a) && std::isnan(b)) ||
        distance <= options_.absolute + options_.relative * std::abs(a))
      return;
    if (difference.count++ == 0) {
      difference.first = element;
      difference.in_a = a;
      difference.in_b = b;
    }
    if (!(distance <= difference.largest)) difference.largest = distance;
  }

  const DiffOptions& options_;
  CheckpointReader a_;
  CheckpointReader b_;
  std::vector<std::string> words_;
  std::vector<Difference> differences_;
};

}  // namespace

void add_diff(CLI::App& app, Outcome& outcome) {
  CLI::App* const command = app.add_subcommand(
      "diff",
      "Compares arrays and steps of two checkpoints; elements differ by more "
      "than ABSOLUTE + RELATIVE * |A|");
  const auto options = std::make_shared<DiffOptions>();
  command->add_option("A", options->a, "A checkpoint")->required();
  command->add_option("B", options->b, "Another one")->required();
  command->add_option("--absolute", options->absolute, "0 by itself")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--relative", options->relative, "0 by itself")
      ->check(CLI::NonNegativeNumber);
  command->callback([options, &outcome] {
    Diff diff(*options);
    diff.run();
    if (!diff.is_same()) outcome.code = found_something;
    if (outcome.as_json)
      std::cout << diff.json().dump(2, ' ', false,
                                    Json::error_handler_t::replace)
                << '\n';
    else
      diff.print();
  });
}

}  // namespace kzero::tools
