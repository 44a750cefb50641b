// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What tests of the layout share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <kzero/plan.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/message.hpp"

namespace kzero {

inline void PrintTo(const Range& range, std::ostream* out) {
  *out << detail::concat(range);
}

}  // namespace kzero

namespace kzero::test {

/// float32 parameters "p0", "p1", ... of these sizes.
inline ParameterSet parameters_of(const std::vector<std::int64_t>& sizes) {
  ParameterSet set;
  for (const std::int64_t size : sizes)
    set.add("p" + std::to_string(set.size()), {size});
  return set;
}

inline Plan plan_of(const std::vector<std::int64_t>& sizes, int ranks,
                    std::int64_t bucket_bytes = PlanOptions::unlimited) {
  PlanOptions options;
  options.ranks = ranks;
  options.bucket_bytes = bucket_bytes;
  return make_plan(parameters_of(sizes), options);
}

/// Declares a parameter in memory of the caller's own, which is not there:
/// layouts do not look into it.
inline ParameterId add_external(ParameterSet& set, std::string name,
                                std::int64_t size, ParameterOptions options) {
  const DType dtype = options.dtype;
  const DType gradient = options.gradient_dtype.value_or(
      size_of(dtype) == 2 ? DType::float32 : dtype);
  const std::uintptr_t place = static_cast<std::uintptr_t>(set.size()) << 40;
  const auto memory = [&](int bit, DType type) {
    ExternalArray array;
    array.data = reinterpret_cast<void*>((std::uintptr_t{1} << bit) + place);
    array.dtype = type;
    array.extents = {size};
    return array;
  };
  return set.add(std::move(name), memory(60, dtype), memory(61, gradient),
                 std::move(options));
}

/// One line a segment: parameter, bucket and the four ranges.
inline std::vector<std::string> segments_of(const Plan& plan, int rank) {
  std::vector<std::string> lines;
  for (const Segment& s : plan.segments(rank))
    lines.push_back(detail::concat('p', s.parameter.index, " bucket ", s.bucket,
                                   ": buffer ", s.in_buffer, " bucket ",
                                   s.in_bucket, " shard ", s.in_shard,
                                   " parameter ", s.in_parameter));
  return lines;
}

using Lines = std::vector<std::string>;

/// Expects that call throws InvalidArgument with all these words.
template <class F>
void expect_refused(F&& call, const std::vector<std::string>& words) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidArgument& error) {
    const std::string_view message = error.what();
    for (const std::string& word : words)
      EXPECT_NE(message.find(word), std::string_view::npos)
          << "\"" << word << "\" is not in: " << message;
  }
}

}  // namespace kzero::test
