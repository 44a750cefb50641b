// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One bucket as kernels and transfers see it: where it lies, and its types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/element_rule.hpp>

namespace kzero::detail {

struct BucketWork {
  DType dtype = DType::float32;
  /// Whose update kernel runs. Of an external bucket the main parameters' own:
  /// their update writes nothing else.
  DType update_dtype = DType::float32;
  DType gradient_dtype = DType::float32;
  std::int64_t main_bytes = 4;  // of one element
  std::byte* gradients = nullptr;
  std::byte* parameters = nullptr;  // null where external
  std::byte* averaged = nullptr;    // this rank's shard, like the next three
  std::byte* main = nullptr;
  /// 16-bit parameters that the update writes; null where it writes none.
  std::byte* parameter_shard = nullptr;
  std::array<std::byte*, maximum_state_arrays> state = {};
};

}  // namespace kzero::detail
