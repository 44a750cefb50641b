// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Construction: what is laid out and allocated.
#include "optim/optimizer_core.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <optional>
#include <system_error>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/message.hpp"
#include "optim/left_gathers.hpp"
#include "optim/rule_groups.hpp"
#include "optim/spare_core.hpp"
#include "optim/tuning.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

/// By parameter; null for one that is frozen.
std::vector<const Rule*> trained_rules(const ParameterSet& parameters,
                                       std::span<const std::int32_t> group_of,
                                       std::span<const Rule> rules) {
  std::vector<const Rule*> rule_of;
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const auto group =
        static_cast<std::size_t>(group_of[static_cast<std::size_t>(i)]);
    rule_of.push_back(parameters[{i}].frozen ? nullptr : &rules[group]);
  }
  return rule_of;
}

}  // namespace

OptimizerCore::OptimizerCore(std::shared_ptr<Communicator> given_communicator,
                             ParameterSet given_parameters,
                             OptimizerOptions given_options,
                             const ExecutionSpace& given_space)
    : communicator(std::move(given_communicator)),
      parameters(std::move(given_parameters)),
      options(std::move(given_options)),
      space(given_space) {
  // What one rank alone finds wrong must not leave the others waiting: it is
  // told in the same exchange that compares what the ranks were given.
  std::string problem;
  try {
    validate_options();
    static_cast<void>(host_kernels());  // throws where they cannot run
    if (!options.model_parallel) model_ = single_model(parameters);
    set_up_groups();
    set_up_plan();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  agree(*communicator, set_up, parameters, options, problem, model_);
  problem.clear();
  set_up_progress();
  if (options.autotune) tune();
  try {
    set_up_storage();
    // It has nothing to do before the first step.
    if (threaded_) progress_.start([this] { return advance(Hands()); });
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::system_error& error) {
    problem = concat("a thread for the optimizer: ", error.what());
  } catch (const std::exception& error) {
    problem = concat("memory for the optimizer: ", error.what());
  }
  throw_on_all(set_up, problem);
  set_up_steps();
  if (overlaps()) remember(*this);
}

Nonfinite OptimizerCore::nonfinite() const {
  if (options.nonfinite.action() != Nonfinite::Action::automatic)
    return options.nonfinite;
  return options.scaler.kind() == Scaler::Kind::dynamic ? Nonfinite::skip
                                                        : Nonfinite::report;
}

void OptimizerCore::set_up_groups() {
  RuleGroups groups = group_rules(parameters, options);
  require_whole_matrices(parameters, options, groups, communicator->size());
  // On a part of a model that is nothing unusual.
  if (!options.model_parallel && communicator->rank() == 0)
    for (const std::string& name : groups.unexpected)
      log(LogLevel::warning,
          concat("no parameter is in group ", quoted(name),
                 ", for which options.groups has a rule: is the name right?"));
  group_names = std::move(groups.names);
  rules = std::move(groups.rules);
  group_of_ = std::move(groups.group_of);
  require_no_trust_ratio(group_names, rules);
  classes = UpdateClasses(parameters.parameters(), group_of_);
  hash_rules();
}

void OptimizerCore::hash_rules() {
  rules_hash_ = 0;
  for (const Rule& rule : rules)
    for (std::string_view name : rule.hyperparameters()) {
      const double value = rule.get(name);
      rules_hash_ = hash(&value, sizeof value, rules_hash_);
    }
}

void OptimizerCore::set_up_plan() {
  PlanOptions with_ranks = options.plan;
  with_ranks.ranks = communicator->size();
  plan = make_plan(parameters, with_ranks);
  index_segments();
}

void OptimizerCore::index_segments() {
  segments = plan.segments(communicator->rank());
  std::stable_sort(segments.begin(), segments.end(),
                   [](const Segment& a, const Segment& b) {
                     return a.parameter < b.parameter;
                   });
  segment_begin_.assign(static_cast<std::size_t>(parameters.size()) + 1, 0);
  for (const Segment& segment : segments)
    ++segment_begin_[static_cast<std::size_t>(segment.parameter.index) + 1];
  for (std::size_t i = 1; i < segment_begin_.size(); ++i)
    segment_begin_[i] += segment_begin_[i - 1];
}

// Collective. By a duplicate, which takes with it what it needed to take in the
// largest buckets.
void OptimizerCore::tune() {
  const std::shared_ptr<Communicator> trial = reduce_communicator->duplicate();
  std::optional<CommunicationTuning> tuning;
  std::string problem;
  try {
    tuning.emplace(*trial, plan);
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    problem = concat("memory to tune with: ", error.what());
  }
  throw_on_all(set_up, problem);
  const CommunicationChoice choice = tuning->run();
  options.plan.bucket_bytes = choice.bucket_bytes;
  adds_up_ = choice.adds_up;
  tuned_ = choice.words;
  set_up_plan();
}

// It sends over the model-parallel group as well.
bool OptimizerCore::permits_a_thread() const {
  return communicator->concurrent() &&
         (!options.model_parallel || options.model_parallel->concurrent());
}

// Collective.
void OptimizerCore::set_up_progress() {
  reduce_communicator =
      overlaps_backward() ? communicator->duplicate() : communicator;
  gather_communicator = options.gather == GatherMode::at_step && !interleaved()
                            ? communicator
                            : communicator->duplicate();
  if (!overlaps()) {
    progress_choice_ = "calls (nothing overlaps)";
    return;
  }
  if (options.progress != Progress::automatic) {
    threaded_ = options.progress == Progress::thread;
    progress_choice_ = threaded_ ? "a thread" : "calls";
    progress_choice_ += " (chosen by option)";
    return;
  }
  std::int64_t concurrent = permits_a_thread() ? 1 : 0;
  communicator->all_reduce({&concurrent, 1}, Extremum::minimum,
                           {"optimizer set-up"});
  if (communicator->size() == 1) {
    progress_choice_ = "calls (the communicator has one rank)";
  } else if (concurrent == 0) {
    progress_choice_ =
        "calls (MPI was not initialised with MPI_THREAD_MULTIPLE)";
  } else if (!every_rank_has_a_spare_core(
                 *communicator, static_cast<int>(space.concurrency()))) {
    progress_choice_ = "calls (not every rank has a spare core)";
  } else {
    threaded_ = true;
    progress_choice_ = "a thread (every rank has a spare core)";
  }
}

// Everything whose size depends on the number of elements: a model that does
// not fit is refused by the first large allocation.
std::unique_ptr<Storage> OptimizerCore::make_storage(
    const Plan& of, const ParameterSet& with,
    std::span<const std::int32_t> groups, std::span<const Rule> with_rules,
    std::size_t first) const {
  std::vector<std::size_t> state_arrays(of.buffers().size(), 0);
  for (std::int64_t i = 0; i < with.size(); ++i) {
    if (with[{i}].frozen) continue;
    const auto group =
        static_cast<std::size_t>(groups[static_cast<std::size_t>(i)]);
    auto& most =
        state_arrays[static_cast<std::size_t>(of.placement({i}).buffer)];
    most = std::max(most, with_rules[group].state_names().size());
  }
  return std::make_unique<Storage>(
      of, with,
      StorageCommunicators{*gather_communicator, *reduce_communicator,
                           options.share_parameters},
      state_arrays, space, first);
}

void OptimizerCore::set_up_storage() {
  storage = make_storage(plan, parameters, group_of_, rules);
  matrices_ = make_matrices(plan, parameters, group_of_, rules);
  set_up_buckets();
  // What lies in the caller's memory starts with the values that are there.
  if (std::ranges::any_of(plan.buffers(), &Buffer::external)) reload_main();
}

void OptimizerCore::set_up_buckets() {
  buckets.clear();
  for (std::int32_t i = 0; i < bucket_count(); ++i) {
    const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(i)];
    const Buffer& buffer =
        plan.buffers()[static_cast<std::size_t>(bucket.buffer)];
    BucketWork work;
    work.dtype = buffer.dtype;
    work.update_dtype =
        buffer.external ? main_dtype(buffer.dtype) : buffer.dtype;
    work.parameters = storage->parameter_bucket(i);
    if (buffer.frozen) {
      buckets.push_back(work);
      continue;
    }
    work.gradient_dtype = buffer.gradient_dtype;
    work.main_bytes = size_of(main_dtype(buffer.dtype));
    work.gradients = storage->gradient_bucket(i);
    work.averaged = storage->averaged_shard(i);
    work.main = storage->main_shard(i);
    if (size_of(buffer.dtype) == 2 && !buffer.external)
      work.parameter_shard = storage->parameter_shard(i);
    for (std::size_t array = 0; array < storage->state_arrays(i); ++array)
      work.state[array] = storage->state_shard(i, array);
    buckets.push_back(work);
  }
  const int rank = communicator->rank();
  tiles = TileTable(plan, plan.segments(rank), rank);
}

MatrixUpdates OptimizerCore::make_matrices(
    const Plan& of, const ParameterSet& with,
    std::span<const std::int32_t> groups,
    std::span<const Rule> with_rules) const {
  const std::vector<const Rule*> rule_of =
      trained_rules(with, groups, with_rules);
  return MatrixUpdates(
      {of, with, communicator->rank(), rule_of, options.clip_norm.has_value()});
}

void OptimizerCore::set_up_steps() {
  Communicator* const in_model = options.model_parallel.get();
  // Reductions that go out before step() have duplicates of their own.
  rules_agreement_ = RulesAgreement(reduce_communicator,
                                    in_model != nullptr && overlaps_backward()
                                        ? in_model->duplicate()
                                        : options.model_parallel);
  exchanged_.resize(static_cast<std::size_t>(communicator->size()));
  culprits_.resize(exchanged_.size());
  if (in_model != nullptr)
    exchanged_in_model_.resize(static_cast<std::size_t>(in_model->size()));
  loss_scale = initial_state(options.scaler);
  set_up_parameters();
  set_up_pipeline();
}

void OptimizerCore::set_up_parameters() {
  marks_ = Marks(parameters, model_, marks_.last_order());
  kept_exchange_ =
      KeptExchange(*communicator, options.model_parallel.get(), marks_);
  trust_ = TrustRatios(trained_rules(parameters, group_of_, rules), tiles,
                       model_, options.model_parallel.get());
}

void OptimizerCore::set_up_pipeline() {
  trust_.take_pieces();
  totals_.assign(tiles.tiles().size(), {});
  readiness_ = Readiness(parameters, plan);
  reductions_ = Reductions(reduce_communicator, plan, buckets,
                           adds_up_ ? ordered_sum : nullptr,
                           options.reduction_hook, options.trace);
  // Enough transfers to hide latency, few enough to bound the messages in
  // flight; behind a forward pass, one beside that which is waited for.
  const std::int64_t window = options.gather == GatherMode::at_step ? 4 : 2;
  gathers_ = std::make_unique<Gathers>(
      gather_communicator, plan, parameters, buckets, *storage,
      gathers_by_bucket() ? GatherOrder::layout : GatherOrder::forward, window,
      options.trace);
}

Range OptimizerCore::in_bucket(ParameterId id) const {
  const Placement& place = plan.placement(id);
  const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(place.bucket)];
  return shift(place.in_buffer, -bucket.range.begin);
}

std::size_t OptimizerCore::group_index(const std::string& name) const {
  const auto place = std::find(group_names.begin(), group_names.end(), name);
  if (place != group_names.end())
    return static_cast<std::size_t>(place - group_names.begin());
  std::string known;
  for (const std::string& each : group_names)
    known += concat(known.empty() ? "" : ", ", quoted(each));
  throw InvalidArgument(concat("no parameter is in group ", quoted(name),
                               ": the groups are ",
                               known.empty() ? "none" : known));
}

std::span<const Segment> OptimizerCore::segments_of(ParameterId id) const {
  const auto i = static_cast<std::size_t>(parameters[id].storage.index);
  const auto begin = static_cast<std::size_t>(segment_begin_[i]);
  const auto end = static_cast<std::size_t>(segment_begin_[i + 1]);
  return std::span(segments).subspan(begin, end - begin);
}

void OptimizerCore::require_averaged(const ParameterInfo& info) const {
  if (averaged_is_valid_) return;
  throw InvalidArgument(concat("there is no averaged gradient of parameter ",
                               quoted(info.name),
                               ": read it after a step() that updated, "
                               "before gradients are zeroed or marked again"));
}

std::byte* OptimizerCore::averaged_gradient(const Segment& segment) const {
  const BucketWork& bucket = buckets[static_cast<std::size_t>(segment.bucket)];
  return bucket.averaged + segment.in_shard.begin * bucket.main_bytes;
}

Memory OptimizerCore::memory() const {
  const auto turn = progress_.take_quietly();
  Memory memory = storage->memory();
  memory.staging += reduce_communicator->staging_bytes();
  if (gather_communicator != reduce_communicator)
    memory.staging += gather_communicator->staging_bytes();
  memory.work = matrices_.work_bytes();
  return memory;
}

}  // namespace kzero::detail
