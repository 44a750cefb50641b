// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero diff A B
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/layout_json.hpp"
#include "io/link_name.hpp"
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

/// A value of the caller's; arrays are compared with the others.
Json json_of(const UserValue& value) {
  return std::visit(
      []<class T>(const T& each) -> Json {
        if constexpr (requires { each.extents; })
          return "array";
        else if constexpr (std::is_same_v<T, std::string>)
          return detail::link_name(each);
        else if constexpr (std::is_same_v<T, double>)
          return detail::json_of(each);
        else if constexpr (std::is_same_v<T, std::int64_t>)
          return each;
        else {
          Json list = Json::array();
          for (const std::string& text : each)
            list.push_back(detail::link_name(text));
          return list;
        }
      },
      value);
}

/// What a checkpoint says beside its arrays, but for who made it and when: a
/// number or text by its place.
Json numbers_of(const std::filesystem::path& path) {
  const CheckpointReader reader(path);
  const detail::FileLayout& layout = reader.layout();
  Json parameters = Json::object();
  for (const detail::ParameterLayout& parameter : layout.parameters)
    parameters[detail::link_name(parameter.name)] = {
        {"updates", parameter.update_count},
        {"group", detail::link_name(parameter.group)}};
  Json user = Json::object();
  for (const auto& [name, value] : layout.content.user)
    user[detail::link_name(name)] = json_of(value);
  Json json = {{"step", layout.content.step},
               {"skipped_total", layout.skipped_total},
               {"skipped_in_a_row", layout.skipped_in_a_row},
               {"parameters", std::move(parameters)},
               {"groups", detail::json_of(layout.groups)},
               {"user", std::move(user)}};
  if (layout.scaler) json["scaler"] = detail::json_of(*layout.scaler);
  return json.flatten();
}

class Diff {
 public:
  explicit Diff(const DiffOptions& options) : options_(options) {
    // State is compared where both can have it.
    const bool both = is_checkpoint(options.a) && is_checkpoint(options.b);
    const Content content = both ? Content::all : Content::values;
    a_ = read_tensors(options.a, content, OtherTypes::pass_over);
    b_ = read_tensors(options.b, content, OtherTypes::pass_over);
    for (const std::string& each : a_.passed_over)
      words_.push_back(printable(each) + " (first file)");
    for (const std::string& each : b_.passed_over)
      words_.push_back(printable(each) + " (second file)");
    if (both) compare_numbers(numbers_of(options.a), numbers_of(options.b));
  }

  void run() {
    // A parameter can have the name of another one's array: both are there, in
    // the order of the file.
    std::unordered_map<std::string_view, std::deque<const Tensor*>> in_b;
    for (const Tensor& tensor : b_.tensors)
      in_b[tensor.name].push_back(&tensor);
    std::int64_t bytes = 0;
    for (const Tensor& tensor : a_.tensors) bytes += tensor.bytes();
    Progress progress("diff", bytes);
    for (const Tensor& tensor : a_.tensors) {
      auto& others = in_b[tensor.name];
      if (others.empty()) {
        words_.push_back(printable(tensor.name) +
                         " is in the first file alone");
        continue;
      }
      compare(tensor, *others.front());
      others.pop_front();
      progress.add(tensor.bytes());
    }
    for (const Tensor& tensor : b_.tensors)
      if (std::ranges::count(in_b[tensor.name], &tensor) > 0)
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
  /// Of objects of numbers and texts by their places.
  void compare_numbers(const Json& a, const Json& b) {
    Json places = a;
    places.update(b);
    for (const auto& place : places.items()) {
      const bool in_both = a.contains(place.key()) && b.contains(place.key());
      // An object without members.
      if (place.value().is_null()) continue;
      // Of parameters that one file lacks, run() tells.
      if (!in_both && place.key().starts_with("/parameters/")) continue;
      if (in_both && a[place.key()] == b[place.key()]) continue;
      words_.push_back(detail::concat(words_of(place.key()), ": ",
                                      said(a, place.key()), " and ",
                                      said(b, place.key())));
    }
  }

  static std::string said(const Json& json, const std::string& place) {
    if (!json.contains(place)) return "nothing";
    return json.at(place).dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static std::string words_of(std::string pointer) {
    CLI::detail::find_and_replace(pointer, "~1", "/");
    CLI::detail::find_and_replace(pointer, "~0", "~");
    return pointer.substr(1);
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
    if (a.type == TensorType::int64 && b.type == TensorType::int64)
      return compare_integers(difference, a, b);
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

  /// Doubles do not tell all of them apart.
  void compare_integers(Difference& difference, const Tensor& a,
                        const Tensor& b) {
    std::vector<std::int64_t> all;
    for_each_piece(a, [&](std::int64_t, std::span<const std::byte> bytes) {
      const std::size_t count = all.size();
      all.resize(count + bytes.size() / sizeof(std::int64_t));
      std::memcpy(all.data() + count, bytes.data(), bytes.size());
    });
    for_each_piece(b, [&](std::int64_t first,
                          std::span<const std::byte> bytes) {
      const std::int64_t begin = first / std::int64_t{sizeof(std::int64_t)};
      for (std::size_t i = 0; i < bytes.size() / sizeof(std::int64_t); ++i) {
        std::int64_t other = 0;
        std::memcpy(&other, bytes.data() + i * sizeof other, sizeof other);
        const std::int64_t element = begin + static_cast<std::int64_t>(i);
        const std::int64_t own = all[static_cast<std::size_t>(element)];
        if (own == other) continue;
        if (difference.count++ == 0) {
          difference.first = element;
          difference.in_a = static_cast<double>(own);
          difference.in_b = static_cast<double>(other);
        }
        difference.largest = std::max(
            difference.largest,
            std::abs(static_cast<double>(own) - static_cast<double>(other)));
      }
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
  Tensors a_;
  Tensors b_;
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
