// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// All that an optimizer has learnt, in the memory of one process: what
// ShardedOptimizer::consolidate() gathers, and load_state() takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/scaler.hpp>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kzero {

/// One array of a parameter. Two are equal when they have the same bits.
struct StateArray {
  /// "value": the parameter in its own type. "main": its main parameter, where
  /// that is another number (16-bit parameters that are not frozen). Others as
  /// Rule::state_names().
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::byte> bytes = {};  // of all elements, in C order

  friend bool operator==(const StateArray&, const StateArray&) = default;
};

/// One parameter, and its state.
struct ParameterState {
  std::string name;
  std::string group;
  std::vector<std::int64_t> extents = {};  // of each of its arrays
  std::int64_t update_count = 0;
  std::vector<StateArray> arrays = {};  // value, main, state

  /// Null where there is no array of this name.
  const StateArray* find(std::string_view array) const;

  /// All elements of an array, in C order; valid as long as its bytes are.
  /// Throws InvalidArgument for a name that is not there, and for a T that is
  /// not the array's type, naming both types.
  template <Element T>
  std::span<const T> elements(std::string_view array) const {
    const StateArray& found = typed(array, dtype_of<T>);
    return {reinterpret_cast<const T*>(found.bytes.data()),
            found.bytes.size() / sizeof(T)};
  }

  friend bool operator==(const ParameterState&,
                         const ParameterState&) = default;

 private:
  const StateArray& typed(std::string_view array, DType asked) const;
};

struct GroupState {
  std::string name;
  std::string rule;  // "adamw", "sgd"
  std::map<std::string, double> hyperparameters = {};
  friend bool operator==(const GroupState&, const GroupState&) = default;
};

/// A loss scaler and what it has come to.
struct ScalerState {
  Scaler scaler = {};
  double scale = 1.0;
  std::int64_t good_steps = 0;  // since the last growth or overflow
  std::int64_t hysteresis_left = 1;
  friend bool operator==(const ScalerState&, const ScalerState&) = default;
};

/// Plain data, which outlives its optimizer. It does not tell how many ranks
/// there were, and in which buckets and shards the elements lay: equal training
/// gives equal states.
struct OptimizerState {
  std::int64_t steps = 0;
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
  ScalerState scaler = {};
  std::vector<GroupState> groups = {};
  /// In order of declaration; names that are tied to another's storage have no
  /// entry of their own.
  std::vector<ParameterState> parameters = {};

  /// Null where there is no parameter of this name.
  const ParameterState* find(std::string_view parameter) const;

  /// Throw InvalidArgument for a name that is not there.
  const ParameterState& parameter(std::string_view name) const;
  const GroupState& group(std::string_view name) const;

  friend bool operator==(const OptimizerState&,
                         const OptimizerState&) = default;
};

}  // namespace kzero
