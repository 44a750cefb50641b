// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <iterator>
#include <kzero/plan.hpp>

#include "core/message.hpp"

namespace kzero {

const Placement& Plan::placement(ParameterId id) const {
  if (id.index < 0 || id.index >= std::ssize(placements_))
    throw InvalidArgument(detail::concat(
        "no such parameter in the plan (expected an index below ",
        placements_.size(), ", got ", id.index,
        "): use an id of the ParameterSet that the plan was made from"));
  return placements_[static_cast<std::size_t>(id.index)];
}

ShardTable Plan::shards(std::int64_t bucket) const {
  if (bucket < 0 || bucket >= std::ssize(buckets_))
    throw InvalidArgument(detail::concat(
        "no such bucket in the plan (expected an index below ", buckets_.size(),
        ", got ", bucket, "): use an index into buckets()"));
  const Range range = buckets_[static_cast<std::size_t>(bucket)].range;
  return ShardTable::uniform(ranks_, range.size() / ranks_);
}

std::vector<Segment> Plan::segments(int rank) const {
  if (rank < 0 || rank >= ranks_)
    throw InvalidArgument(
        detail::concat("no such rank in the plan (expected a rank below ",
                       ranks_, ", got ", rank, "): use a rank of its group"));
  std::vector<Segment> segments;
  for (std::int64_t b = 0; b < trained_buckets_; ++b) {
    const Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
    const Buffer& buffer = buffers_[static_cast<std::size_t>(bucket.buffer)];
    const Range shard = shift(shards(b).range(rank), bucket.range.begin);
    const auto end = buffer.parameters.begin() + bucket.parameters.end;
    // Parameters ascend and do not overlap: those that end inside or behind
    // the shard follow those that end before it.
    auto place = std::partition_point(
        buffer.parameters.begin() + bucket.parameters.begin, end,
        [&](ParameterId id) {
          return placement(id).in_buffer.end <= shard.begin;
        });
    for (; place != end; ++place) {
      const Range whole = placement(*place).in_buffer;
      if (whole.begin >= shard.end) break;
      const Range own = intersect(whole, shard);
      if (own.empty()) continue;  // a parameter of no elements
      segments.push_back({.parameter = *place,
                          .bucket = b,
                          .in_buffer = own,
                          .in_bucket = shift(own, -bucket.range.begin),
                          .in_shard = shift(own, -shard.begin),
                          .in_parameter = shift(own, -whole.begin)});
    }
  }
  return segments;
}

}  // namespace kzero
