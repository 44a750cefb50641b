// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/marks.hpp"

#include <algorithm>
#include <kzero/error.hpp>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

bool bit(std::span<const std::uint64_t> words, std::int64_t place) {
  return (words[static_cast<std::size_t>(place / 64)] >> (place % 64) & 1) != 0;
}

void set_bit(std::span<std::uint64_t> words, std::int64_t place) {
  words[static_cast<std::size_t>(place / 64)] |= std::uint64_t{1}
                                                 << (place % 64);
}

}  // namespace

Marks::Marks(const ParameterSet& parameters, const ModelGroup& model,
             std::span<const ParameterId> last_order)
    : parameters_(&parameters), shared_count_(model.keep_count) {
  const auto count = static_cast<std::size_t>(parameters.size());
  marked_.assign(count, 0);
  storage_marked_.assign(count, 0);
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    if (!info.frozen) ++markable_;
    if (is_trained_storage(i) && info.unmarked == Unmarked::keep) {
      keepers_.push_back(i);
      shared_place_.push_back(model.keep_place[static_cast<std::size_t>(i)]);
    }
  }
  order_.reserve(static_cast<std::size_t>(markable_));
  last_order_.reserve(static_cast<std::size_t>(markable_));
  last_order_.assign(last_order.begin(), last_order.end());
  if (!keepers_.empty()) kept_.assign(count, 0);
}

bool Marks::is_trained_storage(std::int64_t parameter) const {
  const ParameterInfo& info = (*parameters_)[{parameter}];
  return !info.frozen && info.storage.index == parameter;
}

void Marks::mark(ParameterId id) {
  const ParameterInfo& info = (*parameters_)[id];
  if (info.frozen)
    throw InvalidArgument(concat("parameter ", quoted(info.name),
                                 " is frozen and cannot be marked ready: it "
                                 "has no gradient"));
  std::uint8_t& mark = marked_[static_cast<std::size_t>(id.index)];
  if (mark != 0)
    throw InvalidArgument(concat(
        "parameter ", quoted(info.name),
        " is marked ready twice in one step: mark it once, after its last "
        "micro-batch"));
  mark = 1;
  storage_marked_[static_cast<std::size_t>(info.storage.index)] = 1;
  order_.push_back(id);
  ++count_;
}

void Marks::forget_kept() {
  for (const std::int64_t each : keepers_)
    kept_[static_cast<std::size_t>(each)] = 0;
}

void Marks::clear() {
  forget_kept();
  absent_ = false;
  if (count_ == 0) return;
  std::fill(marked_.begin(), marked_.end(), std::uint8_t{0});
  std::fill(storage_marked_.begin(), storage_marked_.end(), std::uint8_t{0});
  count_ = 0;
  std::swap(order_, last_order_);
  order_.clear();
}

void Marks::require_none(const char* what) const {
  if (count_ == 0) return;
  const auto first = std::find(marked_.begin(), marked_.end(), 1);
  const ParameterId id{first - marked_.begin()};
  throw InvalidArgument(concat(
      what, " between mark_ready and step() (", count_, " of ", markable_,
      " parameters are marked, the first is ", quoted((*parameters_)[id].name),
      "): what is marked belongs to step(), call that first"));
}

void Marks::write_bits(std::span<std::uint64_t> words) const {
  std::fill(words.begin(), words.end(), std::uint64_t{0});
  if (absent_) return;
  for (std::int64_t k = 0; k < std::ssize(keepers_); ++k)
    if (count_ == 0 || storage_marked(keepers_[static_cast<std::size_t>(k)]))
      set_bit(words, k);
}

void Marks::take_bits(std::span<const std::uint64_t> words) {
  for (std::int64_t k = 0; k < std::ssize(keepers_); ++k)
    kept_[static_cast<std::size_t>(keepers_[static_cast<std::size_t>(k)])] =
        bit(words, k) ? 0 : 1;
}

void Marks::write_shared_bits(std::span<const std::uint64_t> words,
                              std::span<std::uint64_t> shared) const {
  std::fill(shared.begin(), shared.end(), std::uint64_t{0});
  for (std::int64_t k = 0; k < std::ssize(keepers_); ++k) {
    const std::int64_t place = shared_place_[static_cast<std::size_t>(k)];
    if (place >= 0 && bit(words, k)) set_bit(shared, place);
  }
}

void Marks::take_shared_bits(std::span<const std::uint64_t> shared,
                             std::span<std::uint64_t> words) const {
  for (std::int64_t k = 0; k < std::ssize(keepers_); ++k) {
    const std::int64_t place = shared_place_[static_cast<std::size_t>(k)];
    if (place >= 0 && bit(shared, place)) set_bit(words, k);
  }
}

}  // namespace kzero::detail
