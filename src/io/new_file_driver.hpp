// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Lets HDF5 write into a NewFile, whose failures it never sees.
#pragma once

#include "io/hdf5_call.hpp"
#include "io/new_file.hpp"

namespace kzero::detail {

/// HDF5's handle of the driver. It must outlive the files: HDF5 frees a driver
/// that nobody holds before it calls it to close the file (1.10.8).
Handle register_new_file_driver();

/// Creates an HDF5 file in file, which must be empty and outlive the handle.
/// All calls on it succeed as long as memory lasts; ask file.check().
/// What results is an ordinary HDF5 file: the driver leaves no trace.
Handle create_hdf5(NewFile& file, hid_t driver);

}  // namespace kzero::detail
