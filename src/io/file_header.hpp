// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The beginning of a checkpoint: what has to be known to check everything else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kzero::detail {

inline constexpr std::int64_t format_major = 2;
inline constexpr std::int64_t format_minor = 0;

/// Bytes of the header.
inline constexpr std::int64_t header_bytes = 4096;

struct FileHeader {
  std::int64_t file_bytes = 0;
  std::int64_t manifest_place = 0;
  std::int64_t manifest_bytes = 0;
  std::uint64_t manifest_sum = 0;
  /// Of all that is neither header, manifest nor an array, at its place in the
  /// file.
  std::uint64_t metadata_sum = 0;
};

/// header_bytes of them.
std::string header_text(const FileHeader& header);

/// Throws CheckpointError for what is no header, or one of another format.
FileHeader read_header(std::string_view text);

}  // namespace kzero::detail
