// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/own_pieces.hpp"

#include <algorithm>
#include <vector>

#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

/// A segment of a parameter of a bucket, and where its arrays are listed.
struct Owned {
  std::size_t parameter = 0;
  Segment segment;
};

class Walk {
 public:
  Walk(ShardedOptimizer& optimizer, const FileLayout& layout,
       const std::function<void(const OwnPiece&)>& f)
      : optimizer_(optimizer), layout_(layout), f_(f) {}

  void trained(std::int64_t bucket) {
    const std::vector<Owned> owned = owned_of(bucket);
    for (const Owned& each : owned) value(each, each.segment.in_parameter);
    const std::vector<ShardArray> arrays =
        OptimizerAccess::shard_arrays(optimizer_, bucket);
    for (std::size_t k = 0; k < arrays.size(); ++k)
      for (const Owned& each : owned) state(each, k + 1, arrays[k]);
  }

  void frozen(std::int64_t bucket) {
    for (const ParameterId id : ids_of(bucket))
      value({place_of(id), {id, bucket, {}, {}, {}, {}}},
            {0, optimizer_.parameters()[id].size});
  }

 private:
  std::span<const ParameterId> ids_of(std::int64_t bucket) const {
    const Plan& plan = optimizer_.plan();
    const Bucket& of = plan.buckets()[static_cast<std::size_t>(bucket)];
    return std::span(plan.buffer_of(bucket).parameters)
        .subspan(static_cast<std::size_t>(of.parameters.begin),
                 static_cast<std::size_t>(of.parameters.size()));
  }

  std::size_t place_of(ParameterId id) const {
    const auto found = std::ranges::lower_bound(layout_.parameters, id, {},
                                                &ParameterLayout::id);
    return static_cast<std::size_t>(found - layout_.parameters.begin());
  }

  std::vector<Owned> owned_of(std::int64_t bucket) const {
    std::vector<Owned> owned;
    for (const ParameterId id : ids_of(bucket))
      for (const Segment& segment : optimizer_.segments(id))
        if (segment.bucket == bucket) owned.push_back({place_of(id), segment});
    return owned;
  }

  void value(const Owned& each, Range elements) const {
    const ParameterId id = each.segment.parameter;
    const std::int64_t width = size_of(optimizer_.parameters()[id].dtype);
    std::byte* const whole = OptimizerAccess::contiguous_value(optimizer_, id);
    give({{each.parameter, 0},
          id,
          elements,
          width,
          whole == nullptr ? nullptr : whole + elements.begin * width});
  }

  void state(const Owned& each, std::size_t array,
             const ShardArray& shard) const {
    const ParameterLayout& parameter = layout_.parameters[each.parameter];
    if (array >= parameter.arrays.size()) return;
    const std::int64_t width = size_of(shard.dtype);
    give({{each.parameter, array},
          each.segment.parameter,
          each.segment.in_parameter,
          width,
          static_cast<std::byte*>(shard.data) +
              each.segment.in_shard.begin * width});
  }

  void give(const OwnPiece& piece) const {
    if (piece.elements.size() > 0) f_(piece);
  }

  ShardedOptimizer& optimizer_;
  const FileLayout& layout_;
  const std::function<void(const OwnPiece&)>& f_;
};

}  // namespace

void for_each_own_piece(ShardedOptimizer& optimizer, const FileLayout& layout,
                        const std::function<void(const OwnPiece&)>& f) {
  Walk walk(optimizer, layout, f);
  const Plan& plan = optimizer.plan();
  const std::int64_t trained = plan.trained_buckets();
  for (std::int64_t b = 0; b < trained; ++b) walk.trained(b);
  if (optimizer.communicator()->rank() != 0) return;
  for (std::int64_t b = trained; b < std::ssize(plan.buckets()); ++b)
    walk.frozen(b);
}

}  // namespace kzero::detail
