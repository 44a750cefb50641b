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

/// The bytes of a file, the date of its writing blanked.
inline std::string without_time(const std::filesystem::path& path) {
  const std::string created =
      detail::CheckpointReader(path).layout().content.created;
  std::string bytes = file_bytes(path);
  const std::size_t place = bytes.find(created);
  EXPECT_NE(place, bytes.npos);
  return bytes.replace(place, created.size(), created.size(), '-');
}

}  // namespace kzero::test
