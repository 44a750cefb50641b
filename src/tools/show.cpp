// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero show FILE NAME
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/element_count.hpp"
#include "io/json_node.hpp"
#include "kzero/range.hpp"
#include "tools/commands.hpp"
#include "tools/elements.hpp"
#include "tools/progress.hpp"

namespace kzero::tools {
namespace {

using detail::CheckpointReader;
using detail::Json;

constexpr std::size_t bins = 16;

struct Statistics {
  std::int64_t count = 0;
  std::int64_t zeros = 0;
  std::int64_t not_a_number = 0;
  std::int64_t infinite = 0;
  /// Of the finite ones.
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;

  std::int64_t finite() const { return count - not_a_number - infinite; }
  double mean() const { return sum / static_cast<double>(finite()); }
  /// The root of the mean square.
  double rms() const {
    return std::sqrt(squares / static_cast<double>(finite()));
  }

  void add(double value) {
    ++count;
    if (std::isnan(value)) {
      ++not_a_number;
    } else if (std::isinf(value)) {
      ++infinite;
    } else {
      zeros += value == 0 ? 1 : 0;
      minimum = std::min(minimum, value);
      maximum = std::max(maximum, value);
      sum += value;
      squares += value * value;
    }
  }
};

struct ShowOptions {
  std::string file;
  std::string name;
  std::string slice;
};

/// "2:5,7,:" with the array's extents: a range in each dimension.
std::vector<Range> ranges_of(const std::string& slice,
                             const std::vector<std::int64_t>& extents) {
  std::vector<Range> ranges;
  std::size_t begin = 0;
  const auto wrong = [&](const std::string& why) {
    return CheckpointError(detail::concat(
        "the slice ", detail::quoted(slice), " is not one of an array of ",
        shape_text(extents), " (", why,
        "): give BEGIN:END, an index or : for each dimension"));
  };
  const auto number = [&](const std::string& text, std::int64_t otherwise) {
    if (text.empty()) return otherwise;
    std::size_t used = 0;
    std::int64_t value = -1;
    try {
      value = std::stoll(text, &used);
    } catch (const std::exception&) {
    }
    if (used != text.size()) throw wrong(detail::concat(text, " is no number"));
    return value;
  };
  while (begin <= slice.size() && ranges.size() < extents.size()) {
    const std::size_t end = std::min(slice.find(',', begin), slice.size());
    const std::string part = slice.substr(begin, end - begin);
    const std::int64_t extent = extents[ranges.size()];
    const std::size_t colon = part.find(':');
    Range range;
    if (colon == part.npos) {
      range.begin = number(part, -1);
      range.end = range.begin + 1;
    } else {
      range = {number(part.substr(0, colon), 0),
               number(part.substr(colon + 1), extent)};
    }
    if (range.begin < 0 || range.end > extent || range.begin > range.end)
      throw wrong(detail::concat(part, " is not within 0:", extent));
    ranges.push_back(range);
    begin = end + 1;
  }
  if (ranges.size() != extents.size() || begin <= slice.size())
    throw wrong("another number of dimensions");
  return ranges;
}

/// The elements of the slice, in C order.
std::vector<double> slice_of(const CheckpointReader& reader,
                             detail::ArrayIndex index,
                             const std::vector<Range>& ranges) {
  const auto& extents = reader.layout().parameters[index.parameter].extents;
  std::vector<double> values;
  for_each_piece(
      reader, index, [&](std::int64_t first, std::span<const double> numbers) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          std::int64_t rest = first + static_cast<std::int64_t>(i);
          bool is_in = true;
          for (std::size_t d = extents.size(); d-- > 0;) {
            const std::int64_t at = rest % extents[d];
            rest /= extents[d];
            is_in = is_in && at >= ranges[d].begin && at < ranges[d].end;
          }
          if (is_in) values.push_back(numbers[i]);
        }
      });
  return values;
}

std::array<std::int64_t, bins> histogram_of(const CheckpointReader& reader,
                                            detail::ArrayIndex index,
                                            const Statistics& statistics) {
  std::array<std::int64_t, bins> counts{};
  const double width = statistics.maximum - statistics.minimum;
  for_each_piece(
      reader, index, [&](std::int64_t, std::span<const double> numbers) {
        for (const double value : numbers) {
          if (!std::isfinite(value)) continue;
          const double place =
              width > 0 ? (value - statistics.minimum) / width : 0;
          ++counts[std::min(bins - 1,
                            static_cast<std::size_t>(place * double{bins}))];
        }
      });
  return counts;
}

void print_slice(const std::vector<double>& values,
                 const std::vector<Range>& ranges) {
  const auto row = static_cast<std::size_t>(
      ranges.empty() ? 1 : std::max<std::int64_t>(ranges.back().size(), 1));
  for (std::size_t i = 0; i < values.size(); ++i)
    std::cout << number_text(values[i]) << ((i + 1) % row == 0 ? '\n' : ' ');
}

void print_statistics(const CheckpointReader& reader, detail::ArrayIndex index,
                      const Statistics& statistics) {
  const auto& parameter = reader.layout().parameters[index.parameter];
  const auto& array = parameter.arrays[index.array];
  std::cout << printable(parameter.name) << '/' << printable(array.name) << ": "
            << to_string(array.dtype) << ' ' << shape_text(parameter.extents)
            << ", updated " << parameter.update_count << " times\n"
            << statistics.count << " elements, " << statistics.zeros
            << " zeros, " << statistics.not_a_number << " NaN, "
            << statistics.infinite << " infinite\n";
  if (statistics.finite() == 0) return;
  std::cout << "minimum " << number_text(statistics.minimum) << ", maximum "
            << number_text(statistics.maximum) << ", mean "
            << number_text(statistics.mean()) << ", root mean square "
            << number_text(statistics.rms()) << '\n';
  const auto counts = histogram_of(reader, index, statistics);
  const std::int64_t most = *std::ranges::max_element(counts);
  const double width = (statistics.maximum - statistics.minimum) / double{bins};
  for (std::size_t i = 0; i < bins; ++i) {
    std::string from =
        number_text(statistics.minimum + width * static_cast<double>(i));
    from.resize(std::max<std::size_t>(from.size(), 16), ' ');
    std::cout << from << ' '
              << std::string(static_cast<std::size_t>(50 * counts[i] / most),
                             '#')
              << ' ' << counts[i] << '\n';
    if (width == 0) break;
  }
}

Json json_of(const CheckpointReader& reader, detail::ArrayIndex index,
             const Statistics& statistics) {
  const auto& parameter = reader.layout().parameters[index.parameter];
  const auto& array = parameter.arrays[index.array];
  Json json = {{"parameter", printable(parameter.name)},
               {"array", printable(array.name)},
               {"type", to_string(array.dtype)},
               {"extents", parameter.extents},
               {"update_count", parameter.update_count},
               {"zeros", statistics.zeros},
               {"nan", statistics.not_a_number},
               {"infinite", statistics.infinite}};
  if (statistics.finite() == 0) return json;
  json["minimum"] = statistics.minimum;
  json["maximum"] = statistics.maximum;
  json["mean"] = statistics.mean();
  json["root_mean_square"] = statistics.rms();
  json["histogram"] = histogram_of(reader, index, statistics);
  return json;
}

void show(const ShowOptions& options, const Outcome& outcome) {
  const CheckpointReader reader(options.file);
  const detail::ArrayIndex index = find_array(reader.layout(), options.name);
  const auto& parameter = reader.layout().parameters[index.parameter];
  if (!options.slice.empty()) {
    const auto ranges = ranges_of(options.slice, parameter.extents);
    const std::vector<double> values = slice_of(reader, index, ranges);
    if (!outcome.as_json) return print_slice(values, ranges);
    Json json = Json::array();
    for (const double value : values) json.push_back(detail::json_of(value));
    std::cout << json.dump() << '\n';
    return;
  }
  Statistics statistics;
  {
    Progress progress(options.name, detail::element_count(parameter.extents));
    for_each_piece(reader, index,
                   [&](std::int64_t, std::span<const double> numbers) {
                     for (const double value : numbers) statistics.add(value);
                     progress.add(std::ssize(numbers));
                   });
  }
  if (outcome.as_json)
    std::cout << json_of(reader, index, statistics)
                     .dump(2, ' ', false, Json::error_handler_t::replace)
              << '\n';
  else
    print_statistics(reader, index, statistics);
}

}  // namespace

void add_show(CLI::App& app, Outcome& outcome) {
  CLI::App* const command = app.add_subcommand(
      "show", "Statistics, a histogram, or elements of one array");
  const auto options = std::make_shared<ShowOptions>();
  command->add_option("FILE", options->file, "The checkpoint")->required();
  command
      ->add_option("NAME", options->name,
                   "PARAMETER, or PARAMETER/ARRAY (main, exp_avg, ...)")
      ->required();
  command->add_option("--slice", options->slice,
                      "Elements, as BEGIN:END, an index or : for each "
                      "dimension, with commas between them");
  command->callback([options, &outcome] { show(*options, outcome); });
}

}  // namespace kzero::tools
