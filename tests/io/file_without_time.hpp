// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The bytes of a checkpoint, to be compared with those of another.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "io/checkpoint_file.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {

/// The bytes of a file, but for the date of its writing: it stands in HDF5's
/// part and in the manifest, and the header's checksums depend on it.
inline std::string without_time(const std::filesystem::path& path) {
  const std::string created =
      detail::CheckpointReader(path).layout().content.created;
  std::string bytes = file_bytes(path).substr(detail::header_bytes);
  int times = 0;
  for (std::size_t at = bytes.find(created); at != bytes.npos;
       at = bytes.find(created, at), ++times)
    bytes.replace(at, created.size(), created.size(), '-');
  EXPECT_EQ(times, 2);
  return bytes;
}

}  // namespace kzero::test
