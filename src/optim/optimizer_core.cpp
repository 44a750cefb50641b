// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Construction: what is checked, agreed on, laid out and allocated.
#include "optim/optimizer_core.hpp"

#include <algorithm>
#include <cmath>
#include <kzero/error.hpp>
#include <unordered_map>

#include "core/hash.hpp"
#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/setup_facts.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {

OptimizerCore::OptimizerCore(std::shared_ptr<Communicator> given_communicator,
                             ParameterSet given_parameters,
                             OptimizerOptions given_options,
                             const ExecutionSpace& given_space)
    : communicator(std::move(given_communicator)),
      parameters(std::move(given_parameters)),
      options(std::move(given_options)),
      space(given_space) {
  constexpr Subject subject{"optimizer set-up"};
  // What one rank alone finds wrong must not leave the others waiting: it is
  // told in the same exchange that compares what the ranks were given.
  std::string problem;
  try {
    validate_options();
    static_cast<void>(host_kernels());  // throws where they cannot run
    set_up_groups();
    set_up_plan();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  require_agreement(
      *communicator, subject,
      [this](const auto& fact) {
        for_each_setup_fact(parameters, options, fact);
      },
      problem);
  try {
    set_up_storage();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    problem = concat("memory for the optimizer: ", error.what());
  }
  throw_if_any(*communicator, subject, problem);
}

void OptimizerCore::validate_options() const {
  if (options.clip_norm &&
      !(std::isfinite(*options.clip_norm) && *options.clip_norm > 0.0))
    throw InvalidArgument(concat("clip_norm is ", *options.clip_norm,
                                 ", expected a finite number above 0: leave "
                                 "it empty for no clipping"));
  const int ranks = options.plan.ranks;
  if (ranks != 0 && ranks != communicator->size())
    throw InvalidArgument(
        concat("plan.ranks is ", ranks, ", but the communicator has ",
               communicator->size(), " ranks: leave it 0 in an optimizer"));
}

void OptimizerCore::set_up_groups() {
  std::unordered_map<std::string, std::int32_t> known;
  for (const ParameterInfo& info : parameters.parameters()) {
    const auto [place, added] = known.try_emplace(
        info.group, static_cast<std::int32_t>(group_names.size()));
    if (added) {
      group_names.push_back(info.group);
      const auto own = options.groups.find(info.group);
      rules.push_back(own != options.groups.end() ? own->second : options.rule);
    }
    group_of_.push_back(place->second);
  }
  for (const auto& [name, rule] : options.groups)
    if (!known.contains(name))
      throw InvalidArgument(
          concat("no parameter is in group ", quoted(name),
                 ", for which options.groups has a rule: declare one with "
                 "ParameterOptions::group, or drop the rule"));
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
  segments = plan.segments(communicator->rank());
  tiles = TileTable(plan, segments, communicator->rank());

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

void OptimizerCore::set_up_storage() {
  std::vector<std::size_t> state_arrays(plan.buffers().size(), 0);
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    auto& most =
        state_arrays[static_cast<std::size_t>(plan.placement({i}).buffer)];
    most = std::max(most, rules[group_of(i)].state_names().size());
  }
  storage = std::make_unique<Storage>(plan, *communicator, state_arrays, space);
  for (std::int32_t i = 0; i < bucket_count(); ++i) {
    const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(i)];
    const Buffer& buffer =
        plan.buffers()[static_cast<std::size_t>(bucket.buffer)];
    BucketWork work;
    work.dtype = buffer.dtype;
    work.gradient_dtype = buffer.gradient_dtype;
    work.main_bytes = size_of(main_dtype(buffer.dtype));
    work.gradients = storage->gradient_bucket(i);
    work.parameters = storage->parameter_bucket(i);
    work.averaged = storage->averaged_shard(i);
    work.main = storage->main_shard(i);
    if (size_of(buffer.dtype) == 2)
      work.parameter_shard = storage->parameter_shard(i);
    for (std::size_t array = 0; array < storage->state_arrays(i); ++array)
      work.state[array] = storage->state_shard(i, array);
    buckets.push_back(work);
  }
  rules_exchange_ = communicator->allocate(
      communicator->size() * static_cast<std::int64_t>(sizeof(rules_hash_)));
  statistics_.resize(tiles.tiles().size());
  exchanged_.resize(static_cast<std::size_t>(communicator->size()));
  marked_.assign(static_cast<std::size_t>(parameters.size()), 0);
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
                               ": the groups are ", known));
}

std::span<const Segment> OptimizerCore::segments_of(ParameterId id) const {
  static_cast<void>(parameters[id]);  // throws for one that is not there
  const auto i = static_cast<std::size_t>(id.index);
  const auto begin = static_cast<std::size_t>(segment_begin_[i]);
  const auto end = static_cast<std::size_t>(segment_begin_[i + 1]);
  return std::span(segments).subspan(begin, end - begin);
}

Memory OptimizerCore::memory() const {
  Memory memory = storage->memory();
  memory.staging = communicator->staging_bytes();
  return memory;
}

}  // namespace kzero::detail
