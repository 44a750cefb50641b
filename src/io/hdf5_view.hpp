// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What HDF5 says of a checkpoint: groups, datasets and attributes, laid out in
// memory. The places of the arrays in the file follow from it.
#pragma once

#include "io/file_image.hpp"
#include "io/manifest.hpp"

namespace kzero::detail {

struct Hdf5View {
  FileImage image;  // all of the file but header, manifest and the arrays
  StoredLayout stored;
  Manifest manifest;  // but for the checksums of the parameters' arrays
  std::int64_t manifest_place = 0;
};

/// Local. Lays a file of this layout out. Of the parameters, whose objects take
/// the time, the last layout is kept: another file with the same names, shapes
/// and types is quick. Throws CheckpointError for user data that no file can
/// hold, and where there is no memory.
Hdf5View make_hdf5_view(FileLayout layout);

}  // namespace kzero::detail
