// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What stands in a checkpoint beside HDF5's own description of it, so that
// kzero has read and checked everything before anybody interprets it: a header
// at the very beginning, and a manifest, which says what the file holds, where,
// and with which checksums. docs/checkpoint_format.md describes both.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/stored_layout.hpp"

namespace kzero::detail {

/// What a manifest says it is.
inline constexpr std::string_view manifest_format = "kzero";

/// A manifest to be written, made once: its length depends on all but the
/// checksums, and is known before the elements are.
class Manifest {
 public:
  explicit Manifest(const StoredLayout& stored);

  const std::string& text() const { return text_; }
  /// The checksums of the parameters' arrays, which may be others now.
  void put_sums(const ByArray<StoredArray>& arrays);

 private:
  void put_parameter(const ParameterLayout& parameter,
                     std::span<const StoredArray> arrays);
  void put_array(const ArrayLayout& array, const StoredArray& stored);

  std::string text_;
  std::vector<std::size_t> sums_;  // where they stand in the text
};

/// The reverse. User arrays have their extents, and no values yet. Throws
/// CheckpointError for what is no manifest, and for arrays that would not lie
/// in the file one beside another.
StoredLayout read_manifest(std::string_view text, const FileHeader& header);

}  // namespace kzero::detail
