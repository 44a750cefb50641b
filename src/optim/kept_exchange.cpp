// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/kept_exchange.hpp"

#include <algorithm>

namespace kzero::detail {

KeptExchange::KeptExchange(Communicator& communicator,
                           Communicator* model_parallel, const Marks& marks)
    : communicator_(&communicator),
      model_parallel_(marks.shared_words() > 0 ? model_parallel : nullptr),
      words_(marks.words()),
      bits_(static_cast<std::size_t>(marks.words())) {
  if (words_ > 0)
    exchange_ =
        communicator.allocate(communicator.size() * words_ *
                              static_cast<std::int64_t>(sizeof(std::uint64_t)));
  if (model_parallel_ == nullptr) return;
  column_.resize(static_cast<std::size_t>(marks.shared_words()));
  columns_.resize(column_.size() *
                  static_cast<std::size_t>(model_parallel->size()));
}

std::span<std::uint64_t> KeptExchange::of_rank(int rank) const {
  return {static_cast<std::uint64_t*>(exchange_.get()) + rank * words_,
          static_cast<std::size_t>(words_)};
}

void KeptExchange::start(const Marks& marks) {
  pending_ = true;
  if (words_ == 0) return;
  marks.write_bits(of_rank(communicator_->rank()));
  ticket_ = communicator_->start_all_gather(
      {exchange_.get(), DType::float64,
       ShardTable::uniform(communicator_->size(), words_), -1});
}

void KeptExchange::finish(Marks& marks) {
  if (!pending_) return;
  pending_ = false;
  if (ticket_) {
    ticket_->wait();
    ticket_.reset();
  }
  std::fill(bits_.begin(), bits_.end(), std::uint64_t{0});
  for (int rank = 0; words_ > 0 && rank < communicator_->size(); ++rank) {
    const std::span theirs = of_rank(rank);
    for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= theirs[i];
  }
  if (model_parallel_ != nullptr) exchange_over_model(marks);
  marks.take_bits(bits_);
}

// A parameter is updated when one of the model-parallel group has a gradient
// for it.
void KeptExchange::exchange_over_model(const Marks& marks) {
  marks.write_shared_bits(bits_, column_);
  model_parallel_->all_gather(
      column_.data(),
      static_cast<std::int64_t>(column_.size() * sizeof(column_[0])),
      columns_.data(), {"step (kept parameters)"});
  std::fill(column_.begin(), column_.end(), std::uint64_t{0});
  for (std::size_t i = 0; i < columns_.size(); ++i)
    column_[i % column_.size()] |= columns_[i];
  marks.take_shared_bits(column_, bits_);
}

}  // namespace kzero::detail
