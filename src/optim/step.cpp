// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The pipeline of a step: gradients -> bucket -> reduce-scatter -> update of
// the shard -> all-gather -> parameters.
#include <algorithm>
#include <cmath>
#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/join_channel.hpp"
#include "optim/left_gathers.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/seconds.hpp"
#include "optim/setup_facts.hpp"
#include "optim/tile_work.hpp"
#include "storage/external_bucket.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

double clip_coefficient(std::optional<double> clip_norm, double norm) {
  if (!clip_norm) return 1.0;
  const double coefficient = *clip_norm / (norm + 1e-6);
  return coefficient < 1.0
             ? static_cast<double>(static_cast<float>(coefficient))
             : 1.0;
}

}  // namespace

TileWork OptimizerCore::tile_work(double scale, double clip) {
  return {host_kernels(), tiles,   buckets, classes, marks_,
          model_.counted, totals_, trust_,  scale,   clip};
}

void OptimizerCore::sum(const Arrival& arrival, const Hands& hands,
                        bool update) {
  const TileWork work = tile_work(1.0 / (divisor() * loss_scale.scale), 1.0);
  const Contributions& contributions = *arrival.contributions;
  const std::int64_t first_tile = tiles.tiles_of(arrival.bucket).begin;
  const Range range = contributions.range;
  const std::int64_t end =
      first_tile + (range.end + tile_elements - 1) / tile_elements;
  const Range all{first_tile + range.begin / tile_elements, end};
  if (update) {
    hands.for_each_block(
        "kzero::update", all, TileWork::tiles_at_a_time(contributions),
        [&](Range some) { work.sum_and_update(some, contributions); });
    return;
  }
  hands.for_each("kzero::sum", all.begin, all.end,
                 [&](std::int64_t tile) { work.sum(tile, contributions); });
  summed_tiles_ = end;
}

// Every bucket that is not under way goes out. Where the ranks'
// hyperparameters differ, every rank takes what the others send and changes
// nothing. False then.
bool OptimizerCore::reduce() {
  const Region region("kzero::reduce");
  const AddSeconds timer(seconds(Phase::reduce));
  const Hands hands(space);
  rules_agreement_.start(rules_hash_);
  // Before the reductions, since it is waited for before they are taken.
  kept_exchange_.start(marks_);
  start_reductions(trained_buckets());
  const auto find_out = [this] {
    const AddSeconds waiting(exchange_waited_);
    rules_agreement_.wait();
    kept_exchange_.finish(marks_);
    if (agreed() && gathers_by_bucket() && !gathers_begun_) begin_gathers();
  };
  const bool update = !decides_first();
  while (reductions_.under_way()) {
    const Arrival arrival = reductions_.wait();
    // Looked at when something has come, so that a rank that is missing is
    // reported with the bucket.
    find_out();
    if (!agreed()) continue;
    if (arrival.contributions != nullptr)
      sum(arrival, hands, update);
    else if (update)
      finish_buckets(hands);
  }
  find_out();
  if (!agreed()) return false;
  if (update) finish_buckets(hands);
  return true;
}

void OptimizerCore::finish_buckets(const Hands& hands) {
  for (; finished_buckets_ < reductions_.ended(); ++finished_buckets_) {
    // What was added up before step() began.
    const Range of_bucket = tiles.tiles_of(finished_buckets_);
    update_tiles(intersect(of_bucket, {0, summed_tiles_}), 1.0, hands);
    matrices_.update(finished_buckets_,
                     buckets[static_cast<std::size_t>(finished_buckets_)],
                     classes, marks_, 1.0);
    if (gathers_begun_) gathers_->update_ended(finished_buckets_ + 1);
  }
  if (gathers_begun_) gathers_->advance(hands);
}

void OptimizerCore::throw_disagreement() {
  constexpr Subject subject{"step"};
  std::string text;
  if (rules_agreement_.differs_here()) {
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
                          rules_agreement_.differing_column());
  throw InvalidArgument(text +
                        "; nothing was changed, marks stand: set it by "
                        "Group::set and call step() again");
}

void OptimizerCore::update_tiles(Range range, double clip, const Hands& hands) {
  if (range.empty()) return;
  const TileWork work = tile_work(1.0, clip);
  hands.for_each("kzero::update", range.begin, range.end,
                 [&work](std::int64_t tile) { work.update(tile); });
}

void OptimizerCore::update_all(double clip) {
  const Hands hands(space);
  update_tiles({0, std::ssize(tiles.tiles())}, clip, hands);
  for (std::int32_t bucket = 0; bucket < trained_buckets(); ++bucket)
    matrices_.update(bucket, buckets[static_cast<std::size_t>(bucket)], classes,
                     marks_, clip);
}

void OptimizerCore::apply_trust_ratios() {
  if (!trust_.any()) return;
  {
    const AddSeconds waiting(exchange_waited_);
    trust_.exchange(*communicator);
  }
  const TileWork work = tile_work(1.0, 1.0);
  for_each_index("kzero::update", space, 0,
                 static_cast<std::int64_t>(tiles.tiles().size()),
                 [&work](std::int64_t tile) { work.apply_trust_ratios(tile); });
}

// Those that go on while later buckets are reduced.
void OptimizerCore::begin_gathers() {
  gathers_->begin(Ahead::updated);
  gathers_begun_ = true;
}

void OptimizerCore::gather() {
  const Region region("kzero::gather");
  const AddSeconds timer(seconds(Phase::gather));
  const Hands hands(space);
  const bool at_step = options.gather == GatherMode::at_step;
  if (!gathers_begun_)
    gathers_->begin(at_step || progress_.running() ? Ahead::all : Ahead::one);
  if (at_step)
    gathers_->wait_for_all(hands);
  else
    gathers_->advance(hands);
}

void OptimizerCore::count_update() {
  classes.advance();
  marks_.for_each_kept([this](std::int64_t parameter) {
    classes.set_count(parameter, classes.count(parameter) - 1);
  });
  ++steps;
}

void OptimizerCore::take_times(StepRecord& record) {
  record.seconds = std::exchange(seconds_, {});
  record.exposed_seconds = reductions_.take_waited() + gathers_->take_waited() +
                           std::exchange(exchange_waited_, 0.0);
  record.bytes_sent = std::exchange(sent_in_vain_, 0) + take_bytes_sent();
}

std::int64_t OptimizerCore::take_bytes_sent() {
  const std::array<std::int64_t, 2> now = {
      reduce_communicator->bytes_sent(),
      // Where it is the same one, it counts once.
      gather_communicator == reduce_communicator
          ? 0
          : gather_communicator->bytes_sent()};
  const std::array<std::int64_t, 2> before = std::exchange(sent_, now);
  return now[0] - before[0] + now[1] - before[1];
}

// What was given may serve other optimizers too. This one sends by it in steps
// alone; before one, by its duplicates.
void OptimizerCore::forget_bytes_of_others() {
  if (reduce_communicator == communicator)
    sent_[0] = communicator->bytes_sent();
  else if (gather_communicator == communicator)
    sent_[1] = communicator->bytes_sent();
}

JoinRound OptimizerCore::join_round() {
  if (!join_) return {.active = communicator->size()};
  const AddSeconds timer(seconds(Phase::exchange));
  const AddSeconds waiting(exchange_waited_);
  return join_->step(seat_);
}

// A rank that has run out follows the hyperparameters of those that go on.
void OptimizerCore::begin_round(const JoinRound& round) {
  if (round.first_done < 0) return;
  refused_ = join_->options().uneven == Uneven::refuse;
  if (join_->options().divisor == JoinDivisor::active)
    divided_by_ = round.active;
  shared_values_.clear();
  for (const Rule& rule : rules)
    for (std::string_view name : rule.hyperparameters())
      shared_values_.push_back(rule.get(name));
  join_->share_hyperparameters(round, shared_values_);
  if (!shadow_) return;
  auto from = shared_values_.begin();
  for (Rule& rule : rules) {
    const auto count =
        static_cast<std::ptrdiff_t>(rule.hyperparameters().size());
    rule.set(std::span<const double>(from, from + count));
    from += count;
  }
  hash_rules();
}

void OptimizerCore::throw_uneven(const JoinRound& round) {
  throw InvalidArgument(
      concat("join: rank ", round.first_done, " has no more inputs, and ",
             round.active, " of ", communicator->size(),
             " ranks step (the first is rank ", round.first_active,
             ", JoinOptions::uneven is refuse): give every rank as many "
             "inputs; the step was dropped, parameters and state are as "
             "before"));
}

void OptimizerCore::shadow_step(const JoinRound& round) {
  const auto turn = progress_.take();
  if (gathers_->under_way()) gathers_->wait_for_all(Hands(space));
  shadow_ = true;
  marks_.set_absent();
  try {
    step_in_round(std::nullopt, round);
  } catch (...) {
    marks_.clear();
    throw;
  }
}

StepReport OptimizerCore::step(std::optional<double> loss) {
  require_mpi("step");
  detail::advance_left_gathers();
  const auto turn = progress_.take();
  // In a join the ranks do not step together.
  if (pending_call && !joined() && !pending_call->is_over())
    pending_call->advance();
  // Of the step before.
  if (gathers_->under_way() && !gathers_begun_) {
    const AddSeconds timer(seconds(Phase::read));
    gathers_->wait_for_all(Hands(space));
  }
  return step_in_round(loss, join_round());
}

StepReport OptimizerCore::step_in_round(std::optional<double> loss,
                                        const JoinRound& round) {
  const Region region("kzero::step");
  if (options.trace) options.trace->record(TraceKind::step_begin, calls_);
  begin_round(round);
  fence(space, "kzero::step");
  forget_bytes_of_others();
  averaged_is_valid_ = false;
  disagreed_ = false;
  fetch_unmarked();
  if (!prepared_) classes.prepare(rules);
  if (!reduce()) {
    const bool refused = refused_;
    sent_in_vain_ += take_bytes_sent();
    forget_reductions();
    if (refused) {
      forget_step();
      throw_uneven(round);
    }
    disagreed_ = true;
    throw_disagreement();
  }
  if (gathers_begun_) gather();
  const Totals totals = exchange_totals();

  const auto action = nonfinite().action();
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
  record.updated = !(may_skip() && overflow);
  if (record.updated) {
    {
      const AddSeconds timer(seconds(Phase::update));
      if (decides_first())
        update_all(clip_coefficient(options.clip_norm, record.gradient_norm));
      apply_trust_ratios();
    }
    if (!gathers_begun_) gather();
    count_update();
    skipped_in_a_row = 0;
    averaged_is_valid_ = true;
  } else {
    ++skipped_total;
    ++skipped_in_a_row;
    reductions_.settle();
    storage->zero_gradients(space);
  }
  loss_scale = next_state(options.scaler, loss_scale, overflow, divisor());
  forget_step();
  record.skipped_total = skipped_total;
  record.skipped_in_a_row = skipped_in_a_row;
  take_times(record);
  if (options.trace) options.trace->record(TraceKind::step_end, calls_);
  ++calls_;
  if (action == Nonfinite::Action::throw_after &&
      skipped_in_a_row >= options.nonfinite.limit()) {
    sent_in_vain_ += record.bytes_sent;
    throw NonfiniteError(nonfinite_message(record));
  }
  return StepReport(record);
}

}  // namespace kzero::detail
