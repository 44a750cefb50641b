// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The caller's own data in the group /user: a dataset an entry.
#pragma once

#include <kzero/checkpoint.hpp>

#include "io/hdf5_call.hpp"

namespace kzero::detail {

/// Throws CheckpointError, naming the entry, for what a file cannot hold: an
/// empty name, an array whose extents are not those of its values, a list with
/// a NUL byte in a string.
void check_user_data(const UserData& user);

void write_user_data(hid_t group, const UserData& user);

/// Throws CheckpointError, naming the entry, for what is not of these types.
UserData read_user_data(hid_t group);

}  // namespace kzero::detail
