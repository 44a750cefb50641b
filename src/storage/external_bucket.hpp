// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The values of a bucket whose parameters lie in the caller's own memory, as
// elements of the bucket.
#pragma once

#include <cstdint>
#include <kzero/parameter_set.hpp>
#include <kzero/parameter_view.hpp>
#include <kzero/plan.hpp>

namespace kzero::detail {

struct ExternalBucket {
  const Plan& plan;
  const ParameterSet& parameters;
  std::int64_t index = 0;
};

/// Elements [range) of the bucket from or to the caller's memory. The other
/// side has range.size() elements of the bucket's type; padding is not touched.
/// No Kokkos, no allocation, any thread.
void read_values(const ExternalBucket& bucket, Range range, void* to);
void write_values(const ExternalBucket& bucket, Range range, const void* from);

/// Likewise in parallel; return when it is done.
void read_values(const ExecutionSpace& space, const ExternalBucket& bucket,
                 Range range, void* to);
void write_values(const ExecutionSpace& space, const ExternalBucket& bucket,
                  Range range, const void* from);

/// All elements of an array in C order, in parallel; returns when it is done.
void read_array(const ExecutionSpace& space, const ExternalArray& array,
                void* to);

}  // namespace kzero::detail
