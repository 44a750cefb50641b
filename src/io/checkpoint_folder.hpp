// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Several checkpoints in one folder: which is the newest, and which can go.
// Local, of one rank.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/new_file.hpp"

namespace kzero::detail {

inline constexpr const char* latest_name = "latest";

/// Makes the text file "latest" in the file's folder name this file. Throws
/// CheckpointError, and leaves what stood there; where that is no such text, it
/// is not replaced.
void point_to_latest(const std::filesystem::path& file, Durable durable);

/// What can be loaded from a folder: first the file that "latest" names, then
/// the others, those of more steps first. passed_over: why the rest cannot, a
/// line a file. Arrays are not looked at.
struct LatestFiles {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> passed_over;
  /// Whether one of these was a checkpoint once, or is named as the latest, and
  /// not merely left unfinished.
  bool has_lost = false;
};

/// Throws CheckpointError when the folder cannot be read.
LatestFiles latest_files(const std::filesystem::path& folder);

/// Removes complete checkpoints of the file's series but the newest keep, of
/// which it is one. A series are the files of a folder whose names differ in
/// digits alone. Returns what could not be removed, and why, a line a file.
std::vector<std::string> remove_old(const std::filesystem::path& file,
                                    int keep);

}  // namespace kzero::detail
