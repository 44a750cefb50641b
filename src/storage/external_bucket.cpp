// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "storage/external_bucket.hpp"

#include <algorithm>
#include <cstddef>

#include "layout/bucket_walk.hpp"
#include "storage/kokkos_support.hpp"
#include "storage/strided_copy.hpp"

namespace kzero::detail {
namespace {

// Of a bucket, so that a thread meets long rows and few parameters.
constexpr std::int64_t bucket_block = std::int64_t{64} << 10;

std::int64_t element_bytes(const ExternalBucket& bucket) {
  const int buffer =
      bucket.plan.buckets()[static_cast<std::size_t>(bucket.index)].buffer;
  return size_of(bucket.plan.buffers()[static_cast<std::size_t>(buffer)].dtype);
}

/// Calls f(block) in parallel for ranges of at most so many elements that
/// together are the range.
template <class F>
void for_each_block(const ExecutionSpace& space, Range range,
                    std::int64_t elements, const F& f) {
  for_each_index("kzero::copy", space, 0,
                 (range.size() + elements - 1) / elements,
                 [=, &f](std::int64_t i) {
                   const std::int64_t begin = range.begin + i * elements;
                   f(Range{begin, std::min(begin + elements, range.end)});
                 });
}

}  // namespace

void read_values(const ExternalBucket& bucket, Range range, void* to) {
  const std::int64_t width = element_bytes(bucket);
  for_each_part(bucket.plan, bucket.index, range, [&](const BucketPart& part) {
    read_elements(bucket.parameters[part.parameter].external->value,
                  part.in_parameter,
                  static_cast<std::byte*>(to) +
                      (part.in_bucket.begin - range.begin) * width);
  });
}

void write_values(const ExternalBucket& bucket, Range range, const void* from) {
  const std::int64_t width = element_bytes(bucket);
  for_each_part(bucket.plan, bucket.index, range, [&](const BucketPart& part) {
    write_elements(bucket.parameters[part.parameter].external->value,
                   part.in_parameter,
                   static_cast<const std::byte*>(from) +
                       (part.in_bucket.begin - range.begin) * width);
  });
}

void read_values(const ExecutionSpace& space, const ExternalBucket& bucket,
                 Range range, void* to) {
  const std::int64_t width = element_bytes(bucket);
  for_each_block(space, range, bucket_block, [&](Range block) {
    read_values(
        bucket, block,
        static_cast<std::byte*>(to) + (block.begin - range.begin) * width);
  });
}

void write_values(const ExecutionSpace& space, const ExternalBucket& bucket,
                  Range range, const void* from) {
  const std::int64_t width = element_bytes(bucket);
  for_each_block(space, range, bucket_block, [&](Range block) {
    write_values(bucket, block,
                 static_cast<const std::byte*>(from) +
                     (block.begin - range.begin) * width);
  });
}

void read_array(const ExecutionSpace& space, const ExternalArray& array,
                void* to) {
  const std::int64_t width = size_of(array.dtype);
  for_each_block(
      space, {0, array.size()}, block_elements(array), [&](Range block) {
        read_elements(array, block,
                      static_cast<std::byte*>(to) + block.begin * width);
      });
}

}  // namespace kzero::detail
