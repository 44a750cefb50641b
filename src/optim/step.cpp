// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The pipeline of a step: gradients -> bucket -> reduce-scatter -> update of
// the shard -> all-gather -> parameters.
#include <algorithm>
#include <array>
#include <cmath>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/tile_work.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

// Gathers under way at a time: enough to hide latency, few enough to bound the
// messages in flight.
constexpr std::int32_t gather_window = 4;

double clip_coefficient(std::optional<double> clip_norm, double norm) {
  if (!clip_norm) return 1.0;
  const double coefficient = *clip_norm / (norm + 1e-6);
  return coefficient < 1.0
             ? static_cast<double>(static_cast<float>(coefficient))
             : 1.0;
}

}  // namespace

void OptimizerCore::require_unmarked(const char* what) const {
  if (marked_count_ == 0) return;
  throw InvalidArgument(concat(
      what, " between mark_ready and step() (", marked_count_, " of ",
      parameters.size(),
      " parameters are marked): gradients that were marked belong to step()"));
}

void OptimizerCore::mark_ready(ParameterId id, const ExecutionSpace& on) {
  const ParameterInfo& info = parameters[id];
  std::uint8_t& mark = marked_[static_cast<std::size_t>(id.index)];
  if (mark != 0)
    throw InvalidArgument(concat(
        "parameter ", quoted(info.name),
        " is marked ready twice in one step: mark it once, after its last "
        "micro-batch"));
  fence(on, "kzero::ready");
  mark = 1;
  ++marked_count_;
}

void OptimizerCore::zero_gradients(const ExecutionSpace& on) {
  require_unmarked("zero_gradients");
  storage->zero_gradients(on);
}

void OptimizerCore::clear_marks() {
  if (marked_count_ == 0) return;
  std::fill(marked_.begin(), marked_.end(), std::uint8_t{0});
  marked_count_ = 0;
}

// Once something was marked, what was not counts as zero: whatever its
// gradient holds.
void OptimizerCore::zero_unmarked() {
  if (marked_count_ == 0 || marked_count_ == parameters.size()) return;
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    if (marked_[static_cast<std::size_t>(i)] != 0) continue;
    const BucketWork& bucket = bucket_of({i});
    const Range range = in_bucket({i});
    const std::int64_t bytes = size_of(bucket.gradient_dtype);
    zero_bytes(bucket.gradients + range.begin * bytes, range.size() * bytes,
               space);
  }
}

// The hash of every rank's hyperparameters travels beside the first bucket.
Ticket OptimizerCore::start_rules_exchange() {
  auto* hashes = static_cast<std::uint64_t*>(rules_exchange_.get());
  hashes[communicator->rank()] = rules_hash_;
  return communicator->start_all_gather(
      {hashes, DType::float64, ShardTable::uniform(communicator->size(), 1),
       -1});
}

// Bucket by bucket in layout order; the next bucket's exchange runs while this
// one is added up. Where the ranks' hyperparameters differ, every rank takes
// what the others send, changes nothing and throws.
void OptimizerCore::reduce(bool update_at_once) {
  const Region region("kzero::reduce");
  const Ticket rules_exchange = start_rules_exchange();
  const double divisor = options.reduction.divisor(communicator->size());
  const TileWork work{host_kernels(), tiles.tiles(), tiles.pieces(), buckets,
                      classes,        statistics_,   1.0 / divisor};
  const auto start = [&](std::int32_t bucket) {
    const BucketWork& of = buckets[static_cast<std::size_t>(bucket)];
    return communicator->start_reduce({of.gradients, of.gradient_dtype,
                                       plan.shards(bucket), plan.bucket_bytes(),
                                       tile_elements, ordered_sum, bucket});
  };
  ReductionTicket next;
  if (bucket_count() > 0) next = start(0);
  // Looked at when the first piece has come, so that a rank that is missing is
  // reported with the bucket.
  const std::span hashes(static_cast<std::uint64_t*>(rules_exchange_.get()),
                         static_cast<std::size_t>(communicator->size()));
  std::optional<std::ptrdiff_t> other;
  const auto agreed = [&] {
    if (!other) {
      rules_exchange->wait();
      other =
          std::find_if(hashes.begin(), hashes.end(),
                       [&](std::uint64_t each) { return each != hashes[0]; }) -
          hashes.begin();
    }
    return *other == std::ssize(hashes);
  };
  for (std::int32_t bucket = 0; bucket < bucket_count(); ++bucket) {
    const ReductionTicket current = std::move(next);
    if (bucket + 1 < bucket_count()) next = start(bucket + 1);
    const std::int64_t first_tile = tiles.tiles_of(bucket).begin;
    while (const Contributions* contributions = current->next()) {
      if (!agreed()) continue;
      const Range range = contributions->range;
      for_each_index(
          update_at_once ? "kzero::update" : "kzero::sum", space,
          first_tile + range.begin / tile_elements,
          first_tile + (range.end + tile_elements - 1) / tile_elements,
          [&work, contributions, update_at_once](std::int64_t tile) {
            work.sum(tile, *contributions);
            if (update_at_once) work.update(tile);
          });
    }
  }
  if (agreed()) return;
  clear_marks();
  throw InvalidArgument(concat(
      "hyperparameters on rank ", *other,
      " differ from those on rank 0; nothing was changed: set the same values "
      "on every rank and call step() again"));
}

// Added in tile order here and in rank order over the ranks, so that every
// rank has the same bits, and decides alike.
OptimizerCore::Totals OptimizerCore::exchange_totals() {
  Totals mine;
  for (const TileStatistics& tile : statistics_) {
    mine.squares += tile.squares;
    mine.zeros += tile.zeros;
    mine.nonfinite += tile.nonfinite;
  }
  communicator->all_gather(&mine, sizeof mine, exchanged_.data(),
                           {"step (totals)"});
  Totals all;
  for (const Totals& each : exchanged_) {
    all.squares += each.squares;
    all.zeros += each.zeros;
    all.nonfinite += each.nonfinite;
  }
  return all;
}

void OptimizerCore::update_all(double clip) {
  const TileWork work{host_kernels(),
                      tiles.tiles(),
                      tiles.pieces(),
                      buckets,
                      classes,
                      statistics_,
                      1.0,
                      clip};
  for_each_index("kzero::update", space, 0,
                 static_cast<std::int64_t>(tiles.tiles().size()),
                 [&work](std::int64_t tile) { work.update(tile); });
}

// In forward order, the reverse of the layout's.
void OptimizerCore::gather() {
  const Region region("kzero::gather");
  std::array<Ticket, gather_window> window;
  const std::int32_t count = bucket_count();
  for (std::int32_t i = 0; i < count + gather_window; ++i) {
    Ticket& slot = window[static_cast<std::size_t>(i % gather_window)];
    if (slot) {
      slot->wait();
      slot.reset();
    }
    if (i >= count) continue;
    const std::int32_t bucket = count - 1 - i;
    const BucketWork& of = buckets[static_cast<std::size_t>(bucket)];
    slot = communicator->start_all_gather(
        {of.parameters, of.dtype, plan.shards(bucket), bucket});
  }
}

bool OptimizerCore::must_skip(const Totals& totals) const {
  const auto action = options.nonfinite.action();
  return totals.nonfinite > 0 && (action == Nonfinite::Action::skip ||
                                  action == Nonfinite::Action::throw_after);
}

StepReport OptimizerCore::step(std::optional<double> loss) {
  const Region region("kzero::step");
  fence(space, "kzero::step");
  zero_unmarked();
  classes.prepare(rules);

  const auto action = options.nonfinite.action();
  const bool decide_first = options.clip_norm ||
                            action == Nonfinite::Action::skip ||
                            action == Nonfinite::Action::throw_after;
  reduce(!decide_first);
  const Totals totals = exchange_totals();

  StepRecord record;
  record.loss = loss;
  record.gradient_norm = std::sqrt(totals.squares);
  record.zero_count = totals.zeros;
  record.nonfinite = action == Nonfinite::Action::ignore ? 0 : totals.nonfinite;
  record.updated = !must_skip(totals);
  if (record.updated) {
    if (decide_first)
      update_all(clip_coefficient(options.clip_norm, record.gradient_norm));
    gather();
    classes.advance();
    ++steps;
    skipped_in_a_row = 0;
  } else {
    ++skipped_total;
    ++skipped_in_a_row;
    storage->zero_gradients(space);
  }
  clear_marks();
  record.skipped_total = skipped_total;
  if (action == Nonfinite::Action::throw_after &&
      skipped_in_a_row >= options.nonfinite.limit())
    throw NonfiniteError(concat(
        "the averaged gradient was not finite for ", skipped_in_a_row,
        " steps in a row (", totals.nonfinite,
        " elements in the last one); parameters and state are those of the "
        "last good step: lower the learning rate, or look for the cause in "
        "the model"));
  return StepReport(record);
}

}  // namespace kzero::detail
