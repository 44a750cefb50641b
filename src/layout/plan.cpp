// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <iterator>
#include <kzero/plan.hpp>

#include "core/message.hpp"
#include "layout/bucket_walk.hpp"

namespace kzero {

const Placement& Plan::placement(ParameterId id) const {
  if (id.index < 0 || id.index >= std::ssize(placements_))
    throw InvalidArgument(detail::concat(
        "no such parameter in the plan (expected an index below ",
        placements_.size(), ", got ", id.index,
        "): use an id of the ParameterSet that the plan was made from"));
  return placements_[static_cast<std::size_t>(id.index)];
}

std::optional<int> Plan::owner(ParameterId id) const {
  const Placement& place = placement(id);
  if (buffers_[static_cast<std::size_t>(place.buffer)].frozen)
    return std::nullopt;
  if (ranks_ == 1) return 0;
  if (partition_ == Partition::elements) return std::nullopt;
  return owners_[static_cast<std::size_t>(id.index)];
}

ShardTable Plan::shards(std::int64_t bucket) const {
  if (bucket < 0 || bucket >= std::ssize(buckets_))
    throw InvalidArgument(detail::concat(
        "no such bucket in the plan (expected an index below ", buckets_.size(),
        ", got ", bucket, "): use an index into buckets()"));
  if (!offsets_.empty()) {
    const std::size_t row = static_cast<std::size_t>(ranks_) + 1;
    return ShardTable(std::span(offsets_).subspan(
        static_cast<std::size_t>(bucket) * row, row));
  }
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
    const std::int64_t begin =
        buckets_[static_cast<std::size_t>(b)].range.begin;
    const Range shard = shards(b).range(rank);
    detail::for_each_part(*this, b, shard, [&](const detail::BucketPart& part) {
      segments.push_back({.parameter = part.parameter,
                          .bucket = b,
                          .in_buffer = shift(part.in_bucket, begin),
                          .in_bucket = part.in_bucket,
                          .in_shard = shift(part.in_bucket, -shard.begin),
                          .in_parameter = part.in_parameter});
    });
  }
  return segments;
}

}  // namespace kzero
