// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The pipeline of a step: gradients -> bucket -> reduce-scatter -> update of
// the shard -> all-gather -> parameters.
#include <algorithm>
#include <array>
#include <cmath>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/setup_facts.hpp"
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

void OptimizerCore::mark_ready(ParameterId id, const ExecutionSpace& on) {
  marks_.mark(id);
  averaged_is_valid_ = false;
  fence(on, "kzero::ready");
}

void OptimizerCore::zero_gradients(const ExecutionSpace& on) {
  // After a disagreement the caller may begin the step anew.
  if (disagreed_)
    marks_.clear();
  else
    require_unmarked("zero_gradients");
  averaged_is_valid_ = false;
  storage->zero_gradients(on);
}

// Once something was marked, what was not counts as zero: whatever its
// gradient holds.
void OptimizerCore::zero_unmarked() {
  marks_.for_each_unmarked([this](ParameterId id) {
    const BucketWork& bucket = bucket_of(id);
    const Range range = in_bucket(id);
    const std::int64_t bytes = size_of(bucket.gradient_dtype);
    zero_bytes(bucket.gradients + range.begin * bytes, range.size() * bytes,
               space);
  });
}

TileWork OptimizerCore::tile_work(double scale, double clip) {
  return {host_kernels(), tiles,   buckets, classes, marks_,
          model_.counted, totals_, trust_,  scale,   clip};
}

// Bucket by bucket in layout order; the next bucket's exchange runs while this
// one is added up. Where the ranks' hyperparameters differ, every rank takes
// what the others send, changes nothing and throws.
void OptimizerCore::reduce(bool update_at_once) {
  const Region region("kzero::reduce");
  head_.start(rules_hash_, marks_);
  const TileWork work = tile_work(1.0 / (divisor() * loss_scale.scale), 1.0);
  const auto start = [&](std::int32_t bucket) {
    const BucketWork& of = buckets[static_cast<std::size_t>(bucket)];
    return communicator->start_reduce({of.gradients, of.gradient_dtype,
                                       plan.shards(bucket), plan.bucket_bytes(),
                                       tile_elements, ordered_sum, bucket});
  };
  ReductionTicket next;
  if (trained_buckets() > 0) next = start(0);
  for (std::int32_t bucket = 0; bucket < trained_buckets(); ++bucket) {
    const ReductionTicket current = std::move(next);
    if (bucket + 1 < trained_buckets()) next = start(bucket + 1);
    const std::int64_t first_tile = tiles.tiles_of(bucket).begin;
    while (const Contributions* contributions = current->next()) {
      // Looked at when the first piece has come, so that a rank that is
      // missing is reported with the bucket.
      if (!head_.agreed(marks_)) continue;
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
  if (head_.agreed(marks_)) return;
  disagreed_ = true;
  throw_disagreement();
}

void OptimizerCore::throw_disagreement() {
  constexpr Subject subject{"step"};
  std::string text;
  if (head_.differs_here()) {
    try {
      require_agreement(
          *communicator, subject,
          [this](const auto& fact) {
            for_each_rule_fact(group_names, rules, fact);
          },
          "");
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
  }
  if (options.model_parallel)
    text = broadcast_text(*options.model_parallel, subject, text,
                          head_.differing_column());
  throw InvalidArgument(text +
                        "; nothing was changed, marks stand: set it by "
                        "Group::set and call step() again");
}

// Added in tile order here, then in rank order, so that every rank has the
// same bits, and decides alike.
Totals OptimizerCore::exchange_totals() {
  Totals mine;
  for (const Totals& tile : totals_) mine += tile;
  if (!options.model_parallel)
    return add_over_ranks(*communicator, mine, exchanged_);
  if (mine.culprit.rank != Culprit::nobody)
    mine.culprit.model_parallel_rank = options.model_parallel->rank();
  return add_over_ranks(*options.model_parallel,
                        add_over_ranks(*communicator, mine, exchanged_),
                        exchanged_in_model_);
}

void OptimizerCore::update_all(double clip) {
  const TileWork work = tile_work(1.0, clip);
  for_each_index("kzero::update", space, 0,
                 static_cast<std::int64_t>(tiles.tiles().size()),
                 [&work](std::int64_t tile) { work.update(tile); });
}

void OptimizerCore::apply_trust_ratios() {
  if (!trust_.any()) return;
  trust_.exchange(*communicator);
  const TileWork work = tile_work(1.0, 1.0);
  for_each_index("kzero::update", space, 0,
                 static_cast<std::int64_t>(tiles.tiles().size()),
                 [&work](std::int64_t tile) { work.apply_trust_ratios(tile); });
}

// In forward order, the reverse of the layout's.
void OptimizerCore::gather() {
  const Region region("kzero::gather");
  std::array<Ticket, gather_window> window;
  const std::int32_t count = trained_buckets();
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

void OptimizerCore::count_update() {
  classes.advance();
  marks_.for_each_kept([this](std::int64_t parameter) {
    classes.set_count(parameter, classes.count(parameter) - 1);
  });
  ++steps;
}

std::optional<NonfiniteSource> OptimizerCore::source_of(
    const Totals& totals) const {
  const Culprit& culprit = totals.culprit;
  if (culprit.rank == Culprit::nobody) return std::nullopt;
  NonfiniteSource source;
  if (culprit.rank != Culprit::only_the_sum)
    source.rank = static_cast<int>(culprit.rank);
  source.parameter = {culprit.parameter};
  if (options.model_parallel)
    source.model_parallel_rank = static_cast<int>(culprit.model_parallel_rank);
  return source;
}

std::string OptimizerCore::nonfinite_message(const StepRecord& record) const {
  std::string text = concat("the averaged gradient was not finite for ",
                            skipped_in_a_row, " steps in a row (",
                            record.nonfinite, " elements in the last one");
  if (record.nonfinite_source) {
    const NonfiniteSource& source = *record.nonfinite_source;
    text += source.rank ? concat(", first from rank ", *source.rank)
                        : std::string(", from the sum over ranks");
    const bool known =
        !options.model_parallel ||
        source.model_parallel_rank == options.model_parallel->rank();
    if (options.model_parallel)
      text += concat(" (model-parallel rank ", source.model_parallel_rank, ")");
    text += known ? concat(" in parameter ",
                           quoted(parameters[source.parameter].name))
                  : concat(" in its parameter ", source.parameter.index);
  }
  return text +
         "); parameters and state are those of the last good step: lower the "
         "learning rate, or look for the cause in the model";
}

StepReport OptimizerCore::step(std::optional<double> loss) {
  const Region region("kzero::step");
  fence(space, "kzero::step");
  averaged_is_valid_ = false;
  disagreed_ = false;
  zero_unmarked();
  classes.prepare(rules);

  const auto action = nonfinite().action();
  const bool may_skip = action == Nonfinite::Action::skip ||
                        action == Nonfinite::Action::throw_after;
  const bool decide_first = options.clip_norm || may_skip;
  reduce(!decide_first);
  const Totals totals = exchange_totals();

  StepRecord record;
  record.loss = loss;
  record.loss_scale = loss_scale.scale;
  record.gradient_norm = std::sqrt(totals.counted.squares);
  record.zero_count = totals.counted.zeros;
  const bool overflow = totals.nonfinite > 0;
  if (action != Nonfinite::Action::ignore && overflow) {
    // What is not finite can be in a copy that does not count.
    record.nonfinite = std::max(totals.counted.nonfinite, std::int64_t{1});
    record.nonfinite_source = source_of(totals);
  }
  record.updated = !(may_skip && overflow);
  if (record.updated) {
    if (decide_first)
      update_all(clip_coefficient(options.clip_norm, record.gradient_norm));
    apply_trust_ratios();
    gather();
    count_update();
    skipped_in_a_row = 0;
    averaged_is_valid_ = true;
  } else {
    ++skipped_total;
    ++skipped_in_a_row;
    storage->zero_gradients(space);
  }
  loss_scale = next_state(options.scaler, loss_scale, overflow, divisor());
  marks_.clear();
  record.skipped_total = skipped_total;
  record.skipped_in_a_row = skipped_in_a_row;
  if (action == Nonfinite::Action::throw_after &&
      skipped_in_a_row >= options.nonfinite.limit())
    throw NonfiniteError(nonfinite_message(record));
  return StepReport(record);
}

}  // namespace kzero::detail
