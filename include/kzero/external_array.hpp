// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Memory of the caller's own that holds a parameter or its gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <memory>
#include <vector>

namespace kzero {

/// An N-d array in memory that is not the optimizer's.
struct ExternalArray {
  void* data = nullptr;  // the element whose indices are all 0
  DType dtype = DType::float32;
  std::vector<std::int64_t> extents = {};  // empty for a scalar
  /// In elements, one an extent. Empty: C order without gaps.
  std::vector<std::int64_t> strides = {};
  /// Held as long as the array is in use; may be null.
  std::shared_ptr<const void> owner = nullptr;

  /// Product of the extents.
  std::int64_t size() const {
    // The product of the others may be past 2^63.
    for (const std::int64_t extent : extents)
      if (extent == 0) return 0;
    std::int64_t product = 1;
    for (const std::int64_t extent : extents) product *= extent;
    return product;
  }

  /// Whether the elements lie in C order without gaps.
  bool is_contiguous() const {
    if (strides.empty() || size() == 0) return true;
    std::int64_t expected = 1;
    for (std::size_t d = extents.size(); d-- > 0; expected *= extents[d])
      if (extents[d] != 1 && strides[d] != expected) return false;
    return true;
  }
};

/// A parameter in memory of the caller's own. A frozen one has no gradient: an
/// array without data.
struct ExternalStorage {
  ExternalArray value;
  ExternalArray gradient;
};

}  // namespace kzero
