// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which gradients of this rank are complete, and which parameters stay as they
// are because no rank has any.
#pragma once

#include <cstdint>
#include <kzero/parameter_set.hpp>
#include <span>
#include <vector>

#include "optim/model_group.hpp"

namespace kzero::detail {

class Marks {
 public:
  Marks() = default;
  /// parameters outlives it. model: of the model-parallel group. last_order:
  /// what last_order() says until a step has marked any.
  Marks(const ParameterSet& parameters, const ModelGroup& model,
        std::span<const ParameterId> last_order);

  /// Throws InvalidArgument for a parameter that is marked, frozen or not
  /// there.
  void mark(ParameterId id);
  void clear();
  bool any() const { return count_ > 0; }

  /// This rank takes part without gradients: nothing counts as marked, until
  /// clear().
  void set_absent() { absent_ = true; }

  /// The parameters in the order in which they were marked, in the last step
  /// that marked any.
  std::span<const ParameterId> last_order() const { return last_order_; }

  /// Throws InvalidArgument when something is marked. what: the call.
  void require_none(const char* what) const;

  /// Calls f(id) for every storage none of whose names is marked; for none
  /// when nothing is marked at all, since then everything counts as marked.
  template <class F>
  void for_each_unmarked(F&& f) const {
    if (count_ == 0 || count_ == markable_) return;
    for (std::int64_t i = 0; i < parameters_->size(); ++i)
      if (is_trained_storage(i) && !storage_marked(i)) f(ParameterId{i});
  }

  /// Words of the bits below.
  std::int64_t words() const { return (std::ssize(keepers_) + 63) / 64; }

  /// One bit for each parameter that wants to be kept when unmarked: whether
  /// this rank has a gradient for it.
  void write_bits(std::span<std::uint64_t> words) const;

  /// From the bits of all ranks or-ed together.
  void take_bits(std::span<const std::uint64_t> words);

  /// The bits of those that other ranks of the model-parallel group hold too,
  /// in the places that all of them know; from and to the bits above.
  std::int64_t shared_words() const { return (shared_count_ + 63) / 64; }
  void write_shared_bits(std::span<const std::uint64_t> words,
                         std::span<std::uint64_t> shared) const;
  void take_shared_bits(std::span<const std::uint64_t> shared,
                        std::span<std::uint64_t> words) const;

  /// Whether step() leaves this parameter alone; as take_bits() has found.
  bool kept(std::int64_t parameter) const {
    return !kept_.empty() && kept_[static_cast<std::size_t>(parameter)] != 0;
  }

  /// Until take_bits() is called again, none is.
  void forget_kept();

  /// Calls f(parameter) for each that is kept.
  template <class F>
  void for_each_kept(F&& f) const {
    for (const std::int64_t each : keepers_)
      if (kept(each)) f(each);
  }

 private:
  bool is_trained_storage(std::int64_t parameter) const;
  bool storage_marked(std::int64_t parameter) const {
    return storage_marked_[static_cast<std::size_t>(parameter)] != 0;
  }

  const ParameterSet* parameters_ = nullptr;
  std::vector<std::uint8_t> marked_;          // by parameter
  std::vector<std::uint8_t> storage_marked_;  // by parameter, any of its names
  std::vector<std::int64_t> keepers_;         // with Unmarked::keep
  std::vector<std::int64_t> shared_place_;    // of a keeper; -1: not shared
  std::int64_t shared_count_ = 0;
  std::vector<std::uint8_t> kept_;  // by parameter; empty without keepers
  std::vector<ParameterId> order_;  // of marking, in this step
  std::vector<ParameterId> last_order_;
  std::int64_t count_ = 0;
  std::int64_t markable_ = 0;
  bool absent_ = false;
};

}  // namespace kzero::detail
