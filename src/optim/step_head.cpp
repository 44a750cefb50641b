// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/step_head.hpp"

#include <algorithm>

namespace kzero::detail {

StepHead::StepHead(Communicator& communicator, Communicator* model_parallel,
                   const Marks& marks)
    : communicator_(&communicator),
      model_parallel_(model_parallel),
      words_(1 + marks.words()),
      exchange_(communicator.allocate(
          communicator.size() * words_ *
          static_cast<std::int64_t>(sizeof(std::uint64_t)))),
      bits_(static_cast<std::size_t>(marks.words())) {
  if (model_parallel == nullptr) return;
  column_.resize(static_cast<std::size_t>(1 + marks.shared_words()));
  columns_.resize(column_.size() *
                  static_cast<std::size_t>(model_parallel->size()));
}

std::span<std::uint64_t> StepHead::of_rank(int rank) const {
  return {static_cast<std::uint64_t*>(exchange_.get()) + rank * words_,
          static_cast<std::size_t>(words_)};
}

void StepHead::start(std::uint64_t rules_hash, const Marks& marks) {
  const std::span mine = of_rank(communicator_->rank());
  mine[0] = rules_hash;
  marks.write_bits(mine.subspan(1));
  known_ = false;
  ticket_ = communicator_->start_all_gather(
      {exchange_.get(), DType::float64,
       ShardTable::uniform(communicator_->size(), words_), -1});
}

bool StepHead::agreed(Marks& marks) {
  if (!known_) {
    ticket_->wait();
    ticket_.reset();
    differs_here_ = false;
    std::fill(bits_.begin(), bits_.end(), std::uint64_t{0});
    for (int rank = 0; rank < communicator_->size(); ++rank) {
      const std::span theirs = of_rank(rank);
      differs_here_ = differs_here_ || theirs[0] != of_rank(0)[0];
      for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= theirs[i + 1];
    }
    differing_column_ = differs_here_ ? 0 : -1;
    if (model_parallel_ != nullptr) exchange_over_model(marks);
    marks.take_bits(bits_);
    known_ = true;
  }
  return differing_column_ < 0;
}

// Every rank of the model stops when one group has found a difference, and
// updates a parameter that one of them has a gradient for.
void StepHead::exchange_over_model(const Marks& marks) {
  const std::span shared = std::span(column_).subspan(1);
  column_[0] = differs_here_ ? 1 : 0;
  marks.write_shared_bits(bits_, shared);
  model_parallel_->all_gather(
      column_.data(),
      static_cast<std::int64_t>(column_.size() * sizeof(column_[0])),
      columns_.data(), {"step (hyperparameters)"});
  differing_column_ = -1;
  for (int rank = model_parallel_->size() - 1; rank >= 0; --rank) {
    const std::span theirs = std::span(columns_).subspan(
        static_cast<std::size_t>(rank) * column_.size(), column_.size());
    if (theirs[0] != 0) differing_column_ = rank;
    for (std::size_t i = 0; i < shared.size(); ++i) shared[i] |= theirs[i + 1];
  }
  marks.take_shared_bits(shared, bits_);
}

}  // namespace kzero::detail
