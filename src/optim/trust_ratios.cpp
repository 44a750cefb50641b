// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/trust_ratios.hpp"

#include <algorithm>

namespace kzero::detail {

TrustRatios::TrustRatios(std::span<const Rule* const> rule_of,
                         const TileTable& tiles, const ModelGroup& model,
                         Communicator* model_parallel)
    : tiles_(&tiles), model_(&model), model_parallel_(model_parallel) {
  place_.assign(rule_of.size(), -1);
  for (std::size_t i = 0; i < rule_of.size(); ++i) {
    if (rule_of[i] == nullptr || !uses_trust_ratio(*rule_of[i])) continue;
    place_[i] = std::ssize(parameters_);
    parameters_.push_back(static_cast<std::int64_t>(i));
    rules_.push_back(rule_of[i]);
  }
  std::int64_t any = parameters_.empty() ? 0 : 1;
  if (model_parallel != nullptr)
    model_parallel->all_reduce(std::span(&any, 1), Extremum::maximum,
                               {"model-parallel set-up"});
  any_ = any != 0;
  if (parameters_.empty() && !any_) return;
  ratios_.assign(parameters_.size(), 1.0);
  totals_.resize(2 * parameters_.size());
  split_totals_.resize(2 * static_cast<std::size_t>(model.split_count));
  take_pieces();
}

void TrustRatios::take_pieces() {
  if (!parameters_.empty()) sums_.assign(tiles_->pieces().size(), {});
}

void TrustRatios::exchange(Communicator& communicator) {
  constexpr Subject subject{"step (trust ratios)"};
  std::fill(totals_.begin(), totals_.end(), 0.0);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::int64_t place =
        place_[static_cast<std::size_t>(tiles_->pieces()[i].parameter)];
    if (place < 0) continue;
    const auto first = 2 * static_cast<std::size_t>(place);
    totals_[first] += sums_[i].parameter;
    totals_[first + 1] += sums_[i].update;
  }
  if (!totals_.empty()) communicator.all_reduce_sum(totals_, subject);
  if (!split_totals_.empty()) {
    std::fill(split_totals_.begin(), split_totals_.end(), 0.0);
    const auto split_place = [&](std::size_t k) {
      return model_->split_place[static_cast<std::size_t>(parameters_[k])];
    };
    // Copies take the ratio of what they are copies of, and add nothing.
    const auto counted = [&](std::size_t k) {
      return model_->counted[static_cast<std::size_t>(parameters_[k])] != 0;
    };
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (split_place(k) >= 0 && counted(k))
        std::copy_n(totals_.begin() + 2 * std::ptrdiff_t(k), 2,
                    split_totals_.begin() + 2 * split_place(k));
    model_parallel_->all_reduce_sum(split_totals_, subject);
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      if (split_place(k) >= 0)
        std::copy_n(split_totals_.begin() + 2 * split_place(k), 2,
                    totals_.begin() + 2 * std::ptrdiff_t(k));
  }
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    ratios_[k] = trust_ratio(*rules_[k], {totals_[2 * k], totals_[2 * k + 1]});
}

}  // namespace kzero::detail
