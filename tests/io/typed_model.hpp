// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One model in any number type, and what a parameter of a file becomes in a
// model of another one, computed without the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <kzero/kzero.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/nearest_code.hpp"
#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/state_snapshot.hpp"
#include "support/own_memory.hpp"

namespace kzero::test {

inline constexpr DType all_types[] = {DType::float16, DType::bfloat16,
                                      DType::float32, DType::float64};

/// Where the parameters lie: the optimizer's buckets, or the caller's memory.
enum class Memory { buckets, own };

/// Odd sizes, none, a scalar, frozen and tied ones; and two neighbours whose
/// type stays.
class TypedModel {
 public:
  TypedModel(DType dtype, Memory memory, std::int64_t last = 257)
      : memory_(memory) {
    add("matrix", {31, 7}, dtype);
    add("always bfloat16", {11}, DType::bfloat16);
    add("none", {0}, dtype);
    add("scalar", {}, dtype);
    add("always float32", {5}, DType::float32);
    add("no rows", {0, 4}, dtype);
    add("frozen", {3, 3}, dtype, true);
    ParameterOptions tied = typed(dtype);
    tied.tied_to = "matrix";
    set_.add("tied", {31, 7}, tied);
    add("last", {last}, dtype);  // with gaps, where it is the caller's
  }

  ShardedOptimizer make(std::int64_t bucket_bytes,
                        const Partitioning& partition = {}) const {
    OptimizerOptions options;
    options.rule = AdamW{.learning_rate = 0.05};
    options.reduction = Reduction::sum;
    options.plan.bucket_bytes = bucket_bytes;
    partition.set(options.plan);
    return ShardedOptimizer(world(), set_, options);
  }

  bool gaps_are_whole() const {
    return std::ranges::all_of(
        owns_, [](const Own& own) { return own.gaps_are_whole(); });
  }

 private:
  void add(const char* name, const std::vector<std::int64_t>& extents,
           DType dtype, bool frozen = false) {
    ParameterOptions options = typed(dtype);
    options.frozen = frozen;
    if (memory_ == Memory::buckets) {
      set_.add(name, extents, options);
      return;
    }
    const auto order = static_cast<Order>((owns_.size() + 1) % 3);
    owns_.emplace_back(extents, order, dtype);
    owns_.back().add_to(set_, name, options);
  }

  Memory memory_;
  ParameterSet set_;
  std::vector<Own> owns_;
};

/// Numbers of every kind but NaN: ties, denormals, too large for some types.
inline double some_number(std::int64_t i) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double special[] = {0.0,     -0.0,      infinity, -1e300, 1e39,
                                65520.0, 0x1.01p+0, 0x1p-149, 0x1p-24};
  if (i % 5 == 0) return special[i / 5 % 9];
  return std::ldexp(scatter(7, 1, i), static_cast<int>(i % 60) - 30);
}

inline std::string as_bytes(DType dtype, const std::vector<double>& numbers) {
  std::string bytes;
  for (const double each : numbers) {
    const auto single = static_cast<float>(each);
    if (dtype == DType::float64) bytes += bytes_of(each);
    if (dtype == DType::float32) bytes += bytes_of(single);
    if (dtype == DType::float16)
      bytes += bytes_of(nearest_code(binary16, single));
    if (dtype == DType::bfloat16)
      bytes += bytes_of(nearest_code(brain16, single));
  }
  return bytes;
}

inline double widened(Format format, std::uint16_t code) {
  const double size = (code & 0x7fff) == format.infinity
                          ? std::numeric_limits<double>::infinity()
                          : value_of(format, code & 0x7fffu);
  return (code & 0x8000) != 0 ? -size : size;
}

inline std::vector<double> as_numbers(const StateArray& array) {
  const auto width = static_cast<std::size_t>(size_of(array.dtype));
  std::vector<double> numbers;
  for (std::size_t i = 0; i < array.bytes.size(); i += width) {
    std::uint16_t code = 0;
    float single = 0.0f;
    double number = 0.0;
    const std::byte* from = array.bytes.data() + i;
    std::memcpy(&code, from, 2);
    if (width == 4) std::memcpy(&single, from, 4);
    if (width == 4) number = single;
    if (width == 8) std::memcpy(&number, from, 8);
    if (array.dtype == DType::float16) number = widened(binary16, code);
    if (array.dtype == DType::bfloat16) number = widened(brain16, code);
    numbers.push_back(number);
  }
  return numbers;
}

inline void set_bytes(StateArray& array, const std::string& bytes) {
  ASSERT_EQ(array.bytes.size(), bytes.size());
  if (!bytes.empty())
    std::memcpy(array.bytes.data(), bytes.data(), bytes.size());
}

/// Fills all arrays with some numbers, each parameter the rounded main one.
inline void fill(OptimizerState& state) {
  std::int64_t next = 0;
  for (ParameterState& parameter : state.parameters) {
    parameter.update_count = parameter.arrays.size() > 1 ? ++next : 0;
    for (auto array = parameter.arrays.rbegin();
         array != parameter.arrays.rend(); ++array) {
      std::vector<double> numbers(array->bytes.size() /
                                  std::size_t(size_of(array->dtype)));
      for (double& each : numbers) each = some_number(++next);
      if (array->name == "value" && parameter.find("main") != nullptr)
        numbers = as_numbers(*parameter.find("main"));
      set_bytes(*array, as_bytes(array->dtype, numbers));
    }
  }
}

/// Some numbers, wherever the parameters lie, and a step.
inline void disturb(ShardedOptimizer& optimizer) {
  auto state = optimizer.consolidate(0);
  if (state) fill(*state);
  optimizer.load_state(state, 0);
  optimizer.step();
}

/// What a parameter of the file becomes in a model where it has this type.
inline Snapshot converted(const ParameterState& file, DType dtype,
                          bool frozen) {
  Snapshot all;
  const std::string prefix = file.name + "|";
  const StateArray& value = file.arrays.front();
  all[prefix + "updates"] = bytes_of(file.update_count);
  for (const StateArray& each : file.arrays)
    if (each.name != "value" && each.name != "main" && !frozen)
      all[prefix + each.name] = as_bytes(main_dtype(dtype), as_numbers(each));
  const StateArray* main = file.find("main");
  const std::vector<double> best = as_numbers(main != nullptr ? *main : value);
  all[prefix + "value"] =
      as_bytes(dtype, value.dtype == dtype ? as_numbers(value) : best);
  if (size_of(dtype) == 2 && !frozen)
    all[prefix + "main"] = as_bytes(DType::float32, best);
  return all;
}

/// Of all parameters of a typed model of this type.
inline Snapshot converted(const OptimizerState& file, DType dtype) {
  Snapshot all;
  for (const ParameterState& parameter : file.parameters) {
    const bool stays = parameter.name.starts_with("always");
    all.merge(converted(parameter,
                        stays ? parameter.arrays.front().dtype : dtype,
                        parameter.name == "frozen"));
  }
  all["tied|value"] = all.at("matrix|value");
  return all;
}

/// Names what differs of the entries that are expected.
inline testing::AssertionResult has(const Snapshot& got,
                                    const Snapshot& expected) {
  Snapshot some;
  for (const auto& entry : expected)
    if (got.contains(entry.first)) some[entry.first] = got.at(entry.first);
  return equal(some, expected);
}

}  // namespace kzero::test
