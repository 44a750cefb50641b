// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The model as the optimizer sees it: names, shapes and types, in the order in
// which the forward pass uses them. Local: no communication, no memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/external_array.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kzero {

/// Handle of a parameter: its place in the order of declaration.
struct ParameterId {
  std::int64_t index = -1;
  friend constexpr auto operator<=>(const ParameterId&,
                                    const ParameterId&) = default;
};

/// How the ranks of the model-parallel group (OptimizerOptions::model_parallel)
/// hold a parameter.
/// replicated: every rank that has a parameter of this name has all of it.
/// split: this rank's elements are its own, another rank's are others.
enum class ModelParallel { replicated, split };

/// What step() does with a parameter that no rank has marked, when this or
/// another rank has marked something.
/// zero: its gradient counts as zero; moments and decay go on.
/// keep: parameter, state and update count stay as they are.
enum class Unmarked { zero, keep };

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
  ModelParallel model_parallel = ModelParallel::replicated;
  /// Name of the parameter that this one is the same as. In this set, which
  /// must have it already: both names stand for one storage, declared with
  /// equal extents, types and options, and marked each. Elsewhere in the
  /// model-parallel group (a copy on another pipeline stage): this rank has
  /// storage of its own, whose gradient the caller sums over the copies; norm
  /// and counts leave it to the other rank.
  std::string tied_to = {};
  Unmarked unmarked = Unmarked::zero;
  /// Never updated: it has no gradient and no state. write_parameters,
  /// broadcast_parameters and checkpoints know it.
  bool frozen = false;
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
  ModelParallel model_parallel = ModelParallel::replicated;
  std::string tied_to;
  Unmarked unmarked = Unmarked::zero;
  bool frozen = false;
  /// Whose storage it is: its own id, or that of the parameter of this set
  /// that it is tied to.
  ParameterId storage;
  /// The caller's own memory, with all strides; null where the optimizer has
  /// the memory. Names of one storage share it.
  std::shared_ptr<const ExternalStorage> external = nullptr;
};

/// A Kokkos::View, told by its members: this header knows no Kokkos.
template <class T>
concept KokkosView = requires(const T& view) {
  typename T::array_layout;
  typename T::memory_space;
  typename T::memory_traits;
  typename T::non_const_value_type;
  view.data();
  view.is_allocated();
};

/// What a parameter or a gradient in the caller's own memory is given as. Views
/// need kzero/external_view.hpp.
template <class T>
concept OwnMemory = std::same_as<T, ExternalArray> || KokkosView<T>;

namespace detail {

/// Makes an ExternalArray of what is OwnMemory.
template <class Memory>
struct ExternalOf {
  static_assert(sizeof(Memory) == 0,
                "include kzero/external_view.hpp before Kokkos views are given "
                "to ParameterSet::add");
};

template <>
struct ExternalOf<ExternalArray> {
  static ExternalArray make(const ExternalArray& array) { return array; }
};

}  // namespace detail

class ParameterSet {
 public:
  /// Declares a parameter. Names are unique and not empty, any bytes; extents
  /// are at most 8 numbers, zero or more each.
  /// Throws InvalidArgument for anything else, for a size past 2^62 bytes, for
  /// an empty group name or a negative chunk, and for a parameter that is tied
  /// to one of this set and differs from it, or is declared before it. Any
  /// gradient type goes with any type.
  ParameterId add(std::string name, std::vector<std::int64_t> extents,
                  ParameterOptions options = {});

  /// Declares a parameter that lies in memory of the caller's own, of any
  /// layout and strides, and keeps managed views alive. Its extents and types
  /// are those of value and gradient; types in the options that are not the
  /// default must be the same. It starts with the values that are there.
  /// A second name of a storage is declared with the same memory, or by extents
  /// as above.
  /// Throws InvalidArgument as above, and for extents that differ, strides that
  /// are not positive or under which elements share memory, memory that is null
  /// or not aligned, a value and a gradient that overlap, and the first element
  /// of another parameter.
  template <OwnMemory Value, OwnMemory Gradient>
  ParameterId add(std::string name, const Value& value,
                  const Gradient& gradient, ParameterOptions options = {}) {
    const ExternalArray slope = detail::ExternalOf<Gradient>::make(gradient);
    return add_external(std::move(name), detail::ExternalOf<Value>::make(value),
                        &slope, std::move(options));
  }

  /// Likewise one that is frozen, which needs no gradient. One that is given
  /// all the same is not used.
  template <OwnMemory Value>
  ParameterId add(std::string name, const Value& value,
                  ParameterOptions options = {}) {
    return add_external(std::move(name), detail::ExternalOf<Value>::make(value),
                        nullptr, std::move(options));
  }

  /// Declares all parameters of another set, in their order and as they are
  /// there, or in the given group; memory of the caller's own is shared. Ties
  /// are those of both sets together. Returns their ids.
  /// Throws InvalidArgument as add does; this set is unchanged then.
  std::vector<ParameterId> append(
      const ParameterSet& others,
      const std::optional<std::string>& group = std::nullopt);

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
  ParameterId add_external(std::string name, ExternalArray value,
                           const ExternalArray* gradient,
                           ParameterOptions options);
  ParameterId declare(std::string name, std::vector<std::int64_t> extents,
                      ParameterOptions options,
                      std::shared_ptr<const ExternalStorage> external);
  void require_name(const std::string& name) const;
  /// Sets info.storage and info.external. Throws InvalidArgument.
  void tie(ParameterInfo& info);
  /// Throws InvalidArgument when another parameter has the memory.
  void claim_memory(const ParameterInfo& info);

  std::vector<ParameterInfo> parameters_;
  // Names that parameters are tied to and that this set does not have.
  std::set<std::string> tied_elsewhere_;
  // First elements in the caller's memory, and whose they are.
  std::map<const void*, ParameterId> claimed_;
  std::vector<Slot> slots_;
};

}  // namespace kzero
