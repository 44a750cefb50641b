// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Whether HDF5 says the same of a checkpoint as its manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/stored_layout.hpp"

namespace kzero::tools {

/// Opens the file, whose checksums have been verified, with HDF5. What differs,
/// a line each: objects that are missing or that the manifest does not know,
/// links that lead elsewhere, arrays of another type or shape, or that lie
/// elsewhere in the file or out of it, and other counts of steps and updates
/// and hyperparameters. Throws CheckpointError where HDF5 cannot open the file.
std::vector<std::string> hdf5_differences(const std::filesystem::path& path,
                                          const detail::StoredLayout& stored,
                                          const detail::FileHeader& header);

}  // namespace kzero::tools
