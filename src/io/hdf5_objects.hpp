// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Groups and datasets, as the format uses them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/hdf5_call.hpp"

namespace kzero::detail {

/// A group that remembers the order in which its members were created.
/// Link names are UTF-8 without NUL.
Handle create_group(hid_t parent, const std::string& link);

/// A dataspace of these extents; scalar when there are none.
Handle make_space(std::span<const std::int64_t> extents);

/// A contiguous dataset whose place in the file is fixed at once. Nothing is
/// written.
Handle create_dataset(hid_t parent, const std::string& link, hid_t type,
                      std::span<const std::int64_t> extents);

/// Its first byte in the file; 0 where it has none.
std::int64_t place_of(hid_t dataset);

/// All elements, in C order, with the dataset's own type.
void write_dataset(hid_t dataset, hid_t type, const void* data);

}  // namespace kzero::detail
