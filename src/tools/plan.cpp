// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero plan MODEL --ranks P
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <kzero/error.hpp>
#include <kzero/plan.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/block_routes.hpp"
#include "core/message.hpp"
#include "io/json_node.hpp"
#include "layout/exchange_pieces.hpp"
#include "optim/rule_groups.hpp"
#include "optim/setup_facts.hpp"
#include "tools/commands.hpp"
#include "tools/elements.hpp"
#include "tools/planned_model.hpp"
#include "tools/tensors.hpp"

namespace kzero::tools {
namespace {

using detail::concat;
using detail::Json;

struct WhatToPlan {
  std::string model;
  PlanOptions plan{.ranks = 1};
  int ranks_per_node = 1;
  int rank = -1;  // the one with the most
  std::string type;
  std::string gradient_type;
  std::string rule = ModelChoices().rule;
  bool lists_buckets = false;
};

using Purpose = std::pair<const char*, std::int64_t Memory::*>;
constexpr std::array<Purpose, 6> purposes = {
    {{"parameters", &Memory::parameters},
     {"gradients", &Memory::gradients},
     {"averaged", &Memory::averaged},
     {"main", &Memory::main},
     {"moments", &Memory::moments},
     {"staging", &Memory::staging}}};

/// What one rank sends in a step.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

struct Planned {
  PlannedModel model;
  Plan plan;
  Memory unsharded;  // of a single rank
  int rank = 0;
  Memory of_rank;
  std::int64_t least = 0;  // bytes of the rank that has the fewest
  Traffic reduce_scatter;
  Traffic all_gather;
};

/// The most demanding rule of each buffer.
std::vector<std::size_t> state_arrays_of(const PlannedModel& model,
                                         const Plan& plan) {
  std::vector<std::size_t> most(plan.buffers().size(), 0);
  for (std::int64_t i = 0; i < model.parameters.size(); ++i) {
    std::size_t& each =
        most[static_cast<std::size_t>(plan.placement({i}).buffer)];
    each = std::max(each, model.state_arrays[static_cast<std::size_t>(i)]);
  }
  return most;
}

/// The rank with the most bytes of all, and the fewest bytes.
void compare_ranks(Planned& planned, int wanted,
                   const std::vector<std::size_t>& state_arrays) {
  const Plan& plan = planned.plan;
  // Shards that cross parameter borders are equal.
  const int different =
      plan.partition() == Partition::elements ? 1 : plan.ranks();
  planned.of_rank = plan.memory(0, state_arrays);
  planned.least = planned.of_rank.total();
  for (int rank = 1; rank < different; ++rank) {
    const Memory memory = plan.memory(rank, state_arrays);
    planned.least = std::min(planned.least, memory.total());
    if (memory.total() <= planned.of_rank.total()) continue;
    planned.of_rank = memory;
    planned.rank = rank;
  }
  if (wanted < 0) return;
  planned.rank = wanted;
  planned.of_rank = plan.memory(wanted, state_arrays);
}

/// Ranks of a node one after another.
std::vector<std::vector<int>> nodes_of(int ranks, int ranks_per_node) {
  std::vector<std::vector<int>> nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank % ranks_per_node == 0) nodes.emplace_back();
    nodes.back().push_back(rank);
  }
  return nodes;
}

/// What the library's communicators mpi (a rank a node) and node send: see
/// docs/design.md, "Between nodes".
void count_traffic(Planned& planned, int ranks_per_node) {
  const Plan& plan = planned.plan;
  const auto nodes = nodes_of(plan.ranks(), ranks_per_node);
  const auto sums = detail::make_routes(nodes, planned.rank, 2);
  const auto sums_16 = detail::make_routes(nodes, planned.rank, 4);
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
    const Buffer& buffer = plan.buffer_of(b);
    const ShardTable shards = plan.shards(b);
    const DType gradient = buffer.gradient_dtype;
    const detail::Pieces pieces = detail::reduction_pieces(plan, b);
    for (const detail::RankBlock& block :
         (size_of(gradient) == 2 ? sums_16 : sums).outgoing) {
      const std::int64_t elements = shards.size(block.peer);
      planned.reduce_scatter.messages += pieces.count_in(elements);
      planned.reduce_scatter.bytes +=
          elements *
          size_of(block.rank_count == 1 ? gradient : main_dtype(gradient));
    }
    const std::int64_t own = shards.size(planned.rank);
    if (own == 0) continue;
    const std::int64_t others = std::ssize(nodes) - 1;
    planned.all_gather.messages += others;
    planned.all_gather.bytes += others * own * size_of(buffer.dtype);
  }
}

Planned planned_for(const WhatToPlan& what) {
  ModelChoices choices;
  choices.rule = what.rule;
  if (!what.type.empty()) choices.type = parameter_dtype(type_named(what.type));
  if (!what.gradient_type.empty())
    choices.gradient_type = parameter_dtype(type_named(what.gradient_type));
  // Their plans say for every rank and bucket where its shard begins.
  constexpr int most_owners = 1 << 14;
  if (what.plan.partition != Partition::elements &&
      what.plan.ranks > most_owners)
    throw InvalidArgument(concat("this partition is planned for ", most_owners,
                                 " ranks at most"));
  Planned planned;
  planned.model = read_model(what.model, choices);
  const ParameterSet& parameters = planned.model.parameters;
  OptimizerOptions options = planned.model.options;
  options.plan = what.plan;
  detail::require_whole_matrices(parameters, options,
                                 detail::group_rules(parameters, options),
                                 what.plan.ranks);
  PlanOptions single = what.plan;
  single.ranks = 1;
  const Plan alone = make_plan(parameters, single);
  planned.unsharded = alone.memory(0, state_arrays_of(planned.model, alone));
  planned.plan = make_plan(parameters, what.plan);
  if (what.rank >= what.plan.ranks)
    throw InvalidArgument(
        concat("there is no rank ", what.rank, " of ", what.plan.ranks));
  compare_ranks(planned, what.rank,
                state_arrays_of(planned.model, planned.plan));
  count_traffic(planned, what.ranks_per_node);
  return planned;
}

std::int64_t elements_of(const Planned& planned) {
  std::int64_t elements = 0;
  const auto parameters = planned.model.parameters.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].storage.index == static_cast<std::int64_t>(i))
      elements += parameters[i].size;
  return elements;
}

std::int64_t bytes_of(const Plan& plan, std::int64_t bucket) {
  const Buffer& buffer = plan.buffer_of(bucket);
  return plan.buckets()[static_cast<std::size_t>(bucket)].range.size() *
         size_of(buffer.frozen ? buffer.dtype : buffer.gradient_dtype);
}

void print_row(const std::string& name, std::int64_t alone,
               std::int64_t sharded) {
  std::string line = name;
  line.resize(24, ' ');
  line += bytes_text(alone);
  line.resize(44, ' ');
  std::cout << line << bytes_text(sharded) << '\n';
}

void print_buckets(const Plan& plan) {
  std::cout << '\n';
  for (std::int64_t b = 0; b < std::ssize(plan.buckets()); ++b) {
    const Buffer& buffer = plan.buffer_of(b);
    const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(b)];
    std::cout << "bucket " << b << ": " << to_string(buffer.dtype)
              << (buffer.frozen ? ", frozen" : "") << ", "
              << bytes_text(bytes_of(plan, b)) << " of "
              << (buffer.frozen ? "values" : "gradients") << ", "
              << bucket.parameters.size() << " parameters, shards of "
              << plan.shards(b).largest() << " elements at most\n";
  }
}

void print(const Planned& planned, const WhatToPlan& what) {
  const Plan& plan = planned.plan;
  std::int64_t largest = 0;
  for (std::int64_t b = 0; b < std::ssize(plan.buckets()); ++b)
    largest = std::max(largest, bytes_of(plan, b));
  std::cout << planned.model.parameters.size() << " parameters, "
            << elements_of(planned) << " elements\n"
            << plan.ranks() << " ranks, partition "
            << detail::to_string(plan.partition())
            << (plan.divide() ? ", divided" : "") << ", "
            << plan.buckets().size() << " buckets of "
            << bytes_text(plan.bucket_bytes()) << " or more, the largest of "
            << bytes_text(largest) << "\n\n";
  std::string head = "bytes";
  head.resize(24, ' ');
  head += "one rank alone";
  head.resize(44, ' ');
  std::cout << head << "rank " << planned.rank << " of " << plan.ranks()
            << '\n';
  for (const auto& [name, member] : purposes)
    print_row(name, planned.unsharded.*member, planned.of_rank.*member);
  print_row("total", planned.unsharded.total(), planned.of_rank.total());
  if (what.rank < 0 && planned.least < planned.of_rank.total())
    std::cout << "the rank with the fewest has " << bytes_text(planned.least)
              << '\n';
  std::cout << "\nin a step rank " << planned.rank << " sends, with "
            << what.ranks_per_node << " ranks a node, over the network\n"
            << "  to reduce-scatter gradients "
            << planned.reduce_scatter.messages << " messages, "
            << bytes_text(planned.reduce_scatter.bytes)
            << "\n  to all-gather parameters " << planned.all_gather.messages
            << " messages, " << bytes_text(planned.all_gather.bytes) << '\n';
  if (what.lists_buckets) print_buckets(plan);
}

Json json_of(const Memory& memory) {
  Json json = {{"total", memory.total()}};
  for (const auto& [name, member] : purposes) json[name] = memory.*member;
  return json;
}

Json json_of(const Traffic& traffic) {
  return {{"messages", traffic.messages}, {"bytes", traffic.bytes}};
}

Json json_of(const Planned& planned, const WhatToPlan& what) {
  const Plan& plan = planned.plan;
  Json json = {{"parameters", planned.model.parameters.size()},
               {"elements", elements_of(planned)},
               {"ranks", plan.ranks()},
               {"ranks_per_node", what.ranks_per_node},
               {"partition", detail::to_string(plan.partition())},
               {"bucket_bytes", plan.bucket_bytes()},
               {"bucket_count", plan.buckets().size()},
               {"unsharded", json_of(planned.unsharded)},
               {"rank", planned.rank},
               {"memory", json_of(planned.of_rank)},
               {"least_total", planned.least},
               {"reduce_scatter", json_of(planned.reduce_scatter)},
               {"all_gather", json_of(planned.all_gather)}};
  if (!what.lists_buckets) return json;
  Json& buckets = json["buckets"] = Json::array();
  for (std::int64_t b = 0; b < std::ssize(plan.buckets()); ++b)
    buckets.push_back(
        {{"bytes", bytes_of(plan, b)},
         {"frozen", plan.buffer_of(b).frozen},
         {"type", to_string(plan.buffer_of(b).dtype)},
         {"parameters",
          plan.buckets()[static_cast<std::size_t>(b)].parameters.size()},
         {"largest_shard", plan.shards(b).largest()}});
  return json;
}

}  // namespace

void add_plan(CLI::App& app, Outcome& outcome) {
  CLI::App* const command = app.add_subcommand(
      "plan", "Says what a model would take on so many ranks");
  const auto what = std::make_shared<WhatToPlan>();
  const CLI::IsMember types({"float16", "bfloat16", "float32", "float64"});
  const std::map<std::string, Partition> partitions = {
      {"elements", Partition::elements},
      {"parameters", Partition::parameters},
      {"buckets", Partition::buckets}};
  command
      ->add_option("MODEL", what->model,
                   "A checkpoint, .json (see docs/command.md), .safetensors or "
                   ".npz")
      ->required();
  command->add_option("--ranks", what->plan.ranks, "Ranks that share the state")
      ->required()
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--ranks-per-node", what->ranks_per_node,
                   "Ranks that share memory, one after another; 1 by itself")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--partition", what->plan.partition,
                   "PlanOptions::partition; elements by itself")
      ->transform(CLI::CheckedTransformer(partitions));
  command->add_flag("--divide", what->plan.divide, "PlanOptions::divide");
  command
      ->add_option("--bucket-bytes", what->plan.bucket_bytes,
                   "PlanOptions::bucket_bytes, such as 8MiB; 25MiB by itself")
      ->transform(CLI::AsSizeValue(false));
  command->add_option("--type", what->type, "Of all parameters")->check(types);
  command
      ->add_option("--gradient-type", what->gradient_type,
                   "Of all gradients; float32 of 16-bit parameters by itself")
      ->check(types);
  command->add_option("--rule", what->rule,
                      "Of a model that names none; adamw by itself");
  command
      ->add_option("--rank", what->rank,
                   "This one; by itself the one with the most bytes")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--buckets", what->lists_buckets, "Lists every bucket");
  command->callback([what, &outcome] {
    const Planned planned = planned_for(*what);
    if (outcome.as_json)
      std::cout << json_of(planned, *what).dump(2) << '\n';
    else
      print(planned, *what);
  });
}

}  // namespace kzero::tools
