// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Where the arrays of a checkpoint lie in its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/by_array.hpp"
#include "io/file_header.hpp"
#include "io/file_layout.hpp"

namespace kzero::detail {

/// Where an array lies in the file, and the checksum of its bytes.
struct StoredArray {
  std::int64_t place = 0;
  std::uint64_t sum = 0;
};

struct StoredLayout {
  FileLayout layout;
  ByArray<StoredArray> arrays;  // as in the layout
  /// Of the arrays in layout.content.user, by name.
  std::map<std::string, StoredArray> user;
};

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
/// These and the manifest, likewise.
std::vector<Stretch> known_stretches(const StoredLayout& stored,
                                     const FileHeader& header);

/// All that is neither header, manifest nor an array, likewise.
std::vector<Stretch> metadata_stretches(const StoredLayout& stored,
                                        const FileHeader& header);

}  // namespace kzero::detail
