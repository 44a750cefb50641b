// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The caller's own data in the group /user: a dataset an entry.
#pragma once

#include <cstdint>
#include <kzero/checkpoint.hpp>
#include <map>
#include <string>

#include "io/hdf5_call.hpp"

namespace kzero::detail {

/// Throws CheckpointError, naming the entry, for what a file cannot hold: an
/// empty name, an array whose extents are not those of its values, a list with
/// a NUL byte in a string.
void check_user_data(const UserData& user);

/// Returns where the arrays that have elements lie in the file.
std::map<std::string, std::int64_t> write_user_data(hid_t group,
                                                    const UserData& user);

}  // namespace kzero::detail
