// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/rules_agreement.hpp"

#include <span>
#include <utility>

namespace kzero::detail {
namespace {

std::shared_ptr<void> word_of_each(Communicator& communicator) {
  return communicator.allocate(
      communicator.size() * static_cast<std::int64_t>(sizeof(std::uint64_t)));
}

std::span<std::uint64_t> words(const std::shared_ptr<void>& memory,
                               const Communicator& communicator) {
  return {static_cast<std::uint64_t*>(memory.get()),
          static_cast<std::size_t>(communicator.size())};
}

Ticket exchange(Communicator& communicator, const std::shared_ptr<void>& memory,
                std::uint64_t mine) {
  words(memory, communicator)[static_cast<std::size_t>(communicator.rank())] =
      mine;
  return communicator.start_all_gather(
      {memory.get(), DType::float64,
       ShardTable::uniform(communicator.size(), 1), -1});
}

}  // namespace

RulesAgreement::RulesAgreement(std::shared_ptr<Communicator> communicator,
                               std::shared_ptr<Communicator> model_parallel)
    : communicator_(std::move(communicator)),
      model_parallel_(std::move(model_parallel)),
      hashes_(word_of_each(*communicator_)) {
  if (model_parallel_) columns_ = word_of_each(*model_parallel_);
}

void RulesAgreement::start(std::uint64_t rules_hash) {
  if (stage_ != Stage::none) return;
  ticket_ = exchange(*communicator_, hashes_, rules_hash);
  stage_ = Stage::here;
}

// Every rank of the model stops when one data-parallel group has found a
// difference.
void RulesAgreement::end_stage() {
  ticket_.reset();
  if (stage_ == Stage::here) {
    const std::span hashes = words(hashes_, *communicator_);
    differs_here_ = false;
    for (const std::uint64_t each : hashes)
      differs_here_ = differs_here_ || each != hashes[0];
    differing_column_ = differs_here_ ? 0 : -1;
    if (model_parallel_) {
      ticket_ = exchange(*model_parallel_, columns_, differs_here_ ? 1 : 0);
      stage_ = Stage::model;
      return;
    }
  } else {
    const std::span columns = words(columns_, *model_parallel_);
    differing_column_ = -1;
    for (int rank = model_parallel_->size() - 1; rank >= 0; --rank)
      if (columns[static_cast<std::size_t>(rank)] != 0)
        differing_column_ = rank;
  }
  stage_ = Stage::known;
}

bool RulesAgreement::known() {
  while ((stage_ == Stage::here || stage_ == Stage::model) && ticket_->test())
    end_stage();
  return stage_ == Stage::known;
}

void RulesAgreement::wait() {
  while (stage_ == Stage::here || stage_ == Stage::model) {
    ticket_->wait();
    end_stage();
  }
}

}  // namespace kzero::detail
