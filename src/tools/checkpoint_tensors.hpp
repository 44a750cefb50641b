// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checkpoints as tensors, and the reverse.
#pragma once

#include <filesystem>
#include <functional>

#include "tools/tensors.hpp"

namespace kzero::tools {

/// values: of each parameter its value, under its name.
/// main: likewise, but the main parameter where there is one.
/// all: all arrays, and the manifest; what is no value has the name
/// PARAMETER/ARRAY, and the caller's own arrays user/NAME.
enum class Content { values, main, all };

/// Throws CheckpointError. Its bytes are verified as they are read.
Tensors read_checkpoint(const std::filesystem::path& path, Content content);

/// With a manifest the checkpoint that it is of, where the tensors have its
/// names and shapes; without one, a checkpoint of parameters alone, which
/// LoadOptions::weights_only loads. Throws CheckpointError; what stood at path
/// is untouched then.
void write_checkpoint(const std::filesystem::path& path, const Tensors& from,
                      const std::function<void(std::int64_t)>& progress);

}  // namespace kzero::tools
