// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Everything a checkpoint must bring back, taken from the optimizers of all
// ranks without the code under test.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <kzero/kzero.hpp>
#include <map>
#include <string>
#include <vector>

#include "optim/optimizer_access.hpp"

namespace kzero::test {

/// Bytes by what they are.
using Snapshot = std::map<std::string, std::string>;

template <class T>
std::string bytes_of(const T& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

/// Collective: ors the ranks' values, in one message.
inline void merge(Snapshot& pieces, MPI_Comm communicator) {
  std::string bytes;
  for (const auto& [name, value] : pieces) bytes += value;
  MPI_Allreduce(MPI_IN_PLACE, bytes.data(), static_cast<int>(bytes.size()),
                MPI_UNSIGNED_CHAR, MPI_BOR, communicator);
  std::size_t place = 0;
  for (auto& [name, value] : pieces) {
    value = bytes.substr(place, value.size());
    place += value.size();
  }
}

/// Collective over the optimizer's ranks, which are communicator's. The same
/// on every rank; values are this rank's own.
inline Snapshot snapshot(ShardedOptimizer& optimizer, MPI_Comm communicator) {
  using detail::OptimizerAccess;
  Snapshot all;
  Snapshot pieces;  // of the state: what this rank owns, else zeros
  const Plan& plan = optimizer.plan();
  for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i) {
    const ParameterId id{i};
    const ParameterInfo& info = optimizer.parameters()[id];
    const Placement& place = plan.placement(id);
    std::string& value = all[info.name + "|value"];
    value.resize(static_cast<std::size_t>(info.size * size_of(info.dtype)));
    OptimizerAccess::read_value(
        optimizer, id, {0, optimizer.parameters()[id].size}, value.data());
    all[info.name + "|updates"] = bytes_of(optimizer.update_count(id));

    const auto names = OptimizerAccess::state_names(optimizer, id);
    const auto arrays = OptimizerAccess::shard_arrays(optimizer, place.bucket);
    for (std::size_t k = 0; k < names.size(); ++k) {
      const std::int64_t width = size_of(arrays[k].dtype);
      std::string whole(static_cast<std::size_t>(info.size * width), '\0');
      for (const Segment& segment : optimizer.segments(id))
        std::memcpy(
            whole.data() + segment.in_parameter.begin * width,
            static_cast<const char*>(arrays[k].data) +
                segment.in_shard.begin * width,
            static_cast<std::size_t>(segment.in_parameter.size() * width));
      pieces[info.name + "|" + std::string(names[k])] = whole;
    }
  }
  merge(pieces, communicator);
  all.merge(pieces);
  const auto& groups = OptimizerAccess::group_names(optimizer);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Rule& rule = OptimizerAccess::rule(optimizer, g);
    for (const std::string_view name : rule.hyperparameters())
      all["group " + groups[g] + "|" + std::string(name)] =
          bytes_of(rule.get(name));
  }
  const auto counters = OptimizerAccess::counters(optimizer);
  all["steps"] = bytes_of(counters.steps);
  all["skipped"] = bytes_of(counters.skipped_total);
  all["skipped in a row"] = bytes_of(counters.skipped_in_a_row);
  const auto& loss_scale = OptimizerAccess::loss_scale(optimizer);
  all["scale"] = bytes_of(loss_scale.scale);
  all["scale's good steps"] = bytes_of(loss_scale.good_steps);
  all["scale's hysteresis"] = bytes_of(loss_scale.hysteresis_left);
  return all;
}

/// Collective: rank 0's, to ranks that took no part in it too.
inline void broadcast(Snapshot& all, MPI_Comm communicator) {
  const auto broadcast_text = [&](std::string& text) {
    auto size = static_cast<std::int64_t>(text.size());
    MPI_Bcast(&size, 1, MPI_INT64_T, 0, communicator);
    text.resize(static_cast<std::size_t>(size));
    MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, communicator);
  };
  auto count = static_cast<std::int64_t>(all.size());
  MPI_Bcast(&count, 1, MPI_INT64_T, 0, communicator);
  auto entry = all.begin();
  Snapshot received;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string name;
    std::string value;
    if (entry != all.end()) {
      name = entry->first;
      value = entry->second;
      ++entry;
    }
    broadcast_text(name);
    broadcast_text(value);
    received[name] = value;
  }
  all = received;
}

/// Names what differs.
inline testing::AssertionResult equal(const Snapshot& got,
                                      const Snapshot& expected) {
  auto result = testing::AssertionFailure();
  for (const auto& [name, value] : expected) {
    const auto place = got.find(name);
    if (place == got.end())
      result << "missing: " << name << "\n";
    else if (place->second != value)
      result << "different: " << name << "\n";
  }
  if (got == expected) return testing::AssertionSuccess();
  return result << got.size() << " entries, expected " << expected.size();
}

/// Whether everything between and behind this rank's parameters and shards of
/// them is zero.
inline bool padding_is_zero(ShardedOptimizer& optimizer) {
  using detail::OptimizerAccess;
  const Plan& plan = optimizer.plan();
  const int rank = optimizer.communicator()->rank();
  bool zero = true;
  const auto look = [&](const void* data, std::int64_t width,
                        const std::vector<char>& used) {
    const auto* bytes = static_cast<const char*>(data);
    for (std::size_t i = 0; i < used.size(); ++i)
      for (std::int64_t k = 0; k < width && used[i] == 0; ++k)
        zero = zero && bytes[static_cast<std::int64_t>(i) * width + k] == 0;
  };
  const auto mark = [](std::vector<char>& used, Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i)
      used[static_cast<std::size_t>(i)] = 1;
  };
  for (std::size_t b = 0; b < plan.buckets().size(); ++b) {
    const auto index = static_cast<std::int64_t>(b);
    const Bucket& bucket = plan.buckets()[b];
    const Buffer& buffer =
        plan.buffers()[static_cast<std::size_t>(bucket.buffer)];
    std::vector<char> used(static_cast<std::size_t>(bucket.range.size()), 0);
    for (const ParameterId id : buffer.parameters)
      if (plan.placement(id).bucket == index)
        mark(used, shift(plan.placement(id).in_buffer, -bucket.range.begin));
    if (!buffer.external) {
      const ParameterId first =
          buffer.parameters[static_cast<std::size_t>(bucket.parameters.begin)];
      const std::int64_t width = size_of(buffer.dtype);
      look(OptimizerAccess::contiguous_value(optimizer, first) -
               (plan.placement(first).in_buffer.begin - bucket.range.begin) *
                   width,
           width, used);
    }
    const auto arrays = OptimizerAccess::shard_arrays(optimizer, index);
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      used.assign(static_cast<std::size_t>(plan.shards(index).size(rank)), 0);
      for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i)
        if (OptimizerAccess::state_names(optimizer, {i}).size() > k)
          for (const Segment& segment : optimizer.segments({i}))
            if (segment.bucket == index) mark(used, segment.in_shard);
      look(arrays[k].data, size_of(arrays[k].dtype), used);
    }
  }
  return zero;
}

}  // namespace kzero::test
