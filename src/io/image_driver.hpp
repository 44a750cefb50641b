// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Lets HDF5 work on a FileImage.
#pragma once

#include "io/file_image.hpp"
#include "io/hdf5_call.hpp"

namespace kzero::detail {

/// HDF5's handle of the driver. It must outlive the files: HDF5 frees a driver
/// that nobody holds before it calls it to close the file (1.10.8).
Handle register_image_driver();

/// An HDF5 file in image, which must be empty, or have one already, and outlive
/// the handle. objects: about how many it will have. The driver leaves no trace
/// in the file.
Handle create_hdf5(FileImage& image, hid_t driver, std::size_t objects);
Handle open_hdf5(FileImage& image, hid_t driver, std::size_t objects);

}  // namespace kzero::detail
