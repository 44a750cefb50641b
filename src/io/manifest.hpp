// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What stands in a checkpoint beside HDF5's own description of it, so that
// kzero has read and checked everything before anybody interprets it: a header
// at the very beginning, and a manifest, which says what the file holds, where,
// and with which checksums. docs/checkpoint_format.md describes both.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_layout.hpp"

namespace kzero::detail {

inline constexpr std::int64_t format_major = 2;
inline constexpr std::int64_t format_minor = 0;

/// Bytes of the header.
inline constexpr std::int64_t header_bytes = 4096;

/// One array of a layout.
struct ArrayIndex {
  std::size_t parameter = 0;
  std::size_t array = 0;
};

/// Where an array lies in the file, and the checksum of its bytes.
struct StoredArray {
  std::int64_t place = 0;
  std::uint64_t sum = 0;
};

struct FileHeader {
  std::int64_t file_bytes = 0;
  std::int64_t manifest_place = 0;
  std::int64_t manifest_bytes = 0;
  std::uint64_t manifest_sum = 0;
  /// Of all that is neither header, manifest nor an array, at its place in the
  /// file.
  std::uint64_t metadata_sum = 0;
};

struct StoredLayout {
  FileLayout layout;
  /// As in the layout: of each parameter, each array.
  std::vector<std::vector<StoredArray>> arrays;
  /// Of the arrays in layout.content.user, by name.
  std::map<std::string, StoredArray> user;
};

/// A manifest without its elements: its length depends on all but the
/// checksums.
std::string manifest_text(const StoredLayout& stored);

/// The reverse. User arrays have their extents, and no values yet. Throws
/// CheckpointError for what is no manifest, and for arrays that would not lie
/// in the file one beside another.
StoredLayout read_manifest(std::string_view text, const FileHeader& header);

/// header_bytes of them.
std::string header_text(const FileHeader& header);

/// Throws CheckpointError for what is no header, or one of a newer format.
FileHeader read_header(std::string_view text);

/// A stretch of the file.
struct Stretch {
  std::int64_t place = 0;
  std::int64_t bytes = 0;
};

/// Bytes of a parameter's array.
std::int64_t array_bytes(const ParameterLayout& parameter, DType dtype);
/// Likewise of an array of the caller's; 0 for what is none.
std::int64_t array_bytes(const UserValue& value);

/// All arrays that have elements, in ascending order.
std::vector<Stretch> array_stretches(const StoredLayout& stored);

/// All that is neither header, manifest nor an array, likewise.
std::vector<Stretch> metadata_stretches(const StoredLayout& stored,
                                        const FileHeader& header);

}  // namespace kzero::detail
