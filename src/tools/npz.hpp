// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Files of several arrays as numpy.savez writes them, and
// numpy.savez_compressed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tools/tensors.hpp"

namespace kzero::tools {

/// Throws CheckpointError. An array in Fortran's order is read whole.
Tensors read_npz(const std::filesystem::path& path, OtherTypes other_types);

/// bfloat16 becomes float32: NumPy does not have it. Not packed. Throws
/// CheckpointError; what stood at path is untouched then.
void write_npz(const std::filesystem::path& path, const Tensors& from,
               const std::function<void(std::int64_t)>& progress);

}  // namespace kzero::tools
