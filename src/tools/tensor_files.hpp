// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Files of tensors of every kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "tools/checkpoint_tensors.hpp"
#include "tools/tensors.hpp"

namespace kzero::tools {

enum class Format { checkpoint, safetensors, npz };

/// What was said of a file, else what its extension says.
Format format_of(const std::filesystem::path& path,
                 std::optional<Format> said = std::nullopt);

inline bool is_checkpoint(const std::filesystem::path& path) {
  return format_of(path) == Format::checkpoint;
}

/// content: of a checkpoint. Throws CheckpointError.
Tensors read_tensors(const std::filesystem::path& path, Content content,
                     OtherTypes other_types,
                     std::optional<Format> format = std::nullopt);

/// Calls progress(bytes) as they are written. Throws CheckpointError; what
/// stood at path is untouched then.
void write_tensors(const std::filesystem::path& path, Format format,
                   const Tensors& tensors,
                   const std::function<void(std::int64_t)>& progress);

}  // namespace kzero::tools
