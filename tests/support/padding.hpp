// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Writes NaN wherever an optimizer's buffers hold no parameter.
#pragma once

#include <kzero/kzero.hpp>
#include <limits>
#include <vector>

namespace kzero::test {

template <class T>
void poison(T* bucket, std::int64_t size, const std::vector<Range>& used) {
  std::vector<bool> is_used(std::size_t(size), false);
  for (const Range& range : used)
    for (std::int64_t i = range.begin; i < range.end; ++i)
      is_used[std::size_t(i)] = true;
  for (std::int64_t i = 0; i < size; ++i)
    if (!is_used[std::size_t(i)])
      bucket[i] = T(std::numeric_limits<float>::quiet_NaN());
}

inline void poison_padding(ShardedOptimizer& optimizer) {
  const Plan& plan = optimizer.plan();
  for (std::int64_t b = 0; b < plan.trained_buckets(); ++b) {
    const Bucket& bucket = plan.buckets()[std::size_t(b)];
    const Buffer& buffer = plan.buffers()[std::size_t(bucket.buffer)];
    std::vector<Range> used;
    for (auto i = bucket.parameters.begin; i < bucket.parameters.end; ++i)
      used.push_back(
          shift(plan.placement(buffer.parameters[std::size_t(i)]).in_buffer,
                -bucket.range.begin));
    const ParameterId first =
        buffer.parameters[std::size_t(bucket.parameters.begin)];
    optimizer.visit(first, [&](const auto& value, const auto& gradient) {
      const std::int64_t offset = used.front().begin;
      poison(value.data() - offset, bucket.range.size(), used);
      poison(gradient.data() - offset, bucket.range.size(), used);
    });
  }
}

}  // namespace kzero::test
