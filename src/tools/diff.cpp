// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero diff A B
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/layout_json.hpp"
#include "tools/commands.hpp"
#include "tools/elements.hpp"
#include "tools/progress.hpp"
#include "tools/tensor_files.hpp"

namespace kzero::tools {
namespace {

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

/// What a checkpoint says beside its arrays, but for who made it and when.
Json numbers_of(const std::filesystem::path& path) {
  const CheckpointReader reader(path);
  const detail::FileLayout& layout = reader.layout();
  Json counts = Json::object();
  for (const detail::ParameterLayout& parameter : layout.parameters)
    counts[printable(parameter.name)] = parameter.update_count;
  Json user = Json::object();
  for (const auto& [name, value] : layout.content.user)
    user[printable(name)] = text_of(value);
  Json json = {{"step", layout.content.step},
               {"skipped_total", layout.skipped_total},
               {"update_counts", std::move(counts)},
               {"groups", detail::json_of(layout.groups)},
               {"user", std::move(user)}};
  if (layout.scaler) json["scaler"] = detail::json_of(*layout.scaler);
  return json;
}

class Diff {
 public:
  explicit Diff(const DiffOptions& options) : options_(options) {
    // State is compared where both can have it.
    const bool both = is_checkpoint(options.a) && is_checkpoint(options.b);
    const Content content = both ? Content::all : Content::values;
    a_ = read_tensors(options.a, content, OtherTypes::refuse).tensors;
    b_ = read_tensors(options.b, content, OtherTypes::refuse).tensors;
    if (both) compare_numbers(numbers_of(options.a), numbers_of(options.b));
  }

  void run() {
    std::unordered_map<std::string_view, const Tensor*> in_b;
    for (const Tensor& tensor : b_) in_b[tensor.name] = &tensor;
    std::int64_t bytes = 0;
    for (const Tensor& tensor : a_) bytes += tensor.bytes();
    Progress progress("diff", bytes);
    for (const Tensor& tensor : a_) {
      const auto other = in_b.find(tensor.name);
      if (other == in_b.end()) {
        words_.push_back(printable(tensor.name) +
                         " is in the first file alone");
        continue;
      }
      compare(tensor, *other->second);
      in_b.erase(other);
      progress.add(tensor.bytes());
    }
    for (const Tensor& tensor : b_)
      if (in_b.contains(tensor.name))
        words_.push_back(printable(tensor.name) +
                         " is in the second file alone");
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
  void compare_numbers(const Json& a, const Json& b) {
    const auto said = [](const Json& json, const Json::json_pointer& place) {
      return json.contains(place)
                 ? json.at(place).dump(-1, ' ', false,
                                       Json::error_handler_t::replace)
                 : std::string("nothing");
    };
    for (const Json& change : Json::diff(a, b)) {
      const Json::json_pointer place(change.at("path").get<std::string>());
      // Of arrays that one file lacks, run() tells.
      if (place.to_string().starts_with("/update_counts/") &&
          !(a.contains(place) && b.contains(place)))
        continue;
      words_.push_back(detail::concat(place.to_string().substr(1), ": ",
                                      said(a, place), " and ", said(b, place)));
    }
  }

  void compare(const Tensor& a, const Tensor& b) {
    if (a.extents != b.extents) {
      words_.push_back(detail::concat(printable(a.name), " has the shape ",
                                      shape_text(a.extents), " and ",
                                      shape_text(b.extents)));
      return;
    }
    if (a.type != b.type)
      words_.push_back(detail::concat(printable(a.name), " is ",
                                      to_string(a.type), " and ",
                                      to_string(b.type)));
    Difference difference{a.name};
    NumberStream in_a(a);
    NumberStream in_b(b);
    for (std::int64_t first = 0; first < in_a.count();) {
      const auto some = in_a.next();
      const auto others = in_b.next();
      for (std::size_t i = 0; i < some.size(); ++i)
        compare(difference, first + static_cast<std::int64_t>(i), some[i],
                others[i]);
      first += std::ssize(some);
    }
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
  std::vector<Tensor> a_;
  std::vector<Tensor> b_;
  std::vector<std::string> words_;
  std::vector<Difference> differences_;
};

}  // namespace

void add_diff(CLI::App& app, Outcome& outcome) {
  CLI::App* const command = app.add_subcommand(
      "diff",
      "Compares two checkpoints, or their parameters with those of a "
      ".safetensors or .npz; elements differ by more than ABSOLUTE + RELATIVE "
      "* |A|");
  const auto options = std::make_shared<DiffOptions>();
  command->add_option("A", options->a, "A file")->required();
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
