// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The model as the optimizer sees it: names, shapes and types, in the order in
// which the forward pass uses them. Local: no communication, no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kzero {

/// Handle of a parameter: its place in the order of declaration.
struct ParameterId {
  std::int64_t index = -1;
  friend constexpr auto operator<=>(const ParameterId&,
                                    const ParameterId&) = default;
};

struct ParameterOptions {
  DType dtype = DType::float32;
  /// Type in which gradients are accumulated and sent. By default float32 for
  /// 16-bit parameters, else the parameter's own type.
  std::optional<DType> gradient_dtype = std::nullopt;
  /// Group whose hyperparameters apply (OptimizerOptions::groups).
  std::string group = "default";
  /// Part of the model on this rank (a virtual pipeline stage). Chunks never
  /// share a bucket.
  int chunk = 0;
};

/// One declared parameter.
struct ParameterInfo {
  std::string name;
  std::vector<std::int64_t> extents;  // C order; empty for a scalar
  std::int64_t size = 0;              // product of the extents
  DType dtype = DType::float32;
  DType gradient_dtype = DType::float32;
  std::string group;
  int chunk = 0;
};

class ParameterSet {
 public:
  /// Declares a parameter. Names are unique and not empty, any bytes; extents
  /// are at most 8 numbers, zero or more each.
  /// Throws InvalidArgument for anything else, for a size past 2^62 bytes, for
  /// an empty group name or a negative chunk. Any gradient type goes with any
  /// type.
  ParameterId add(std::string name, std::vector<std::int64_t> extents,
                  ParameterOptions options = {});

  std::int64_t size() const {
    return static_cast<std::int64_t>(parameters_.size());
  }

  /// Throws InvalidArgument when id is not of this set.
  const ParameterInfo& operator[](ParameterId id) const;

  std::span<const ParameterInfo> parameters() const { return parameters_; }

  /// The parameter of this name, if there is one.
  std::optional<ParameterId> find(std::string_view name) const;

 private:
  /// A place in the table of names, which is open-addressed and at most half
  /// full: the names themselves stand in parameters_ only.
  struct Slot {
    std::size_t hash = 0;
    std::int64_t index = -1;  // -1: free
  };
  /// The slot of the name, or the free one where it belongs. slots_ must not
  /// be empty.
  std::size_t find_slot(std::string_view name, std::size_t hash) const;
  void reserve_one_more();

  std::vector<ParameterInfo> parameters_;
  std::vector<Slot> slots_;
};

}  // namespace kzero
