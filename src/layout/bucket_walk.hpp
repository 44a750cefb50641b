// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which parameters have elements in a range of a bucket.
#pragma once

#include <algorithm>
#include <cstdint>
#include <kzero/plan.hpp>

namespace kzero::detail {

/// The elements of one parameter in a range: both name the same ones.
struct BucketPart {
  ParameterId parameter;
  Range in_bucket;
  Range in_parameter;
};

/// Calls f(BucketPart) for each parameter with elements in the range, in layout
/// order. Costs the logarithm of the bucket's parameters and f's calls.
template <class F>
void for_each_part(const Plan& plan, std::int64_t bucket, Range range, F&& f) {
  const Bucket& in = plan.buckets()[static_cast<std::size_t>(bucket)];
  const Buffer& buffer = plan.buffers()[static_cast<std::size_t>(in.buffer)];
  const auto whole = [&](ParameterId id) {
    return shift(plan.placement(id).in_buffer, -in.range.begin);
  };
  const auto end = buffer.parameters.begin() + in.parameters.end;
  // Parameters ascend and do not overlap: those that end inside or behind the
  // range follow those that end before it.
  auto place = std::partition_point(
      buffer.parameters.begin() + in.parameters.begin, end,
      [&](ParameterId id) { return whole(id).end <= range.begin; });
  for (; place != end; ++place) {
    const Range of = whole(*place);
    if (of.begin >= range.end) break;
    const Range part = intersect(of, range);
    if (part.empty()) continue;  // a parameter of no elements
    f(BucketPart{*place, part, shift(part, -of.begin)});
  }
}

}  // namespace kzero::detail
