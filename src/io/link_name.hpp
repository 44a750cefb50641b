// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Names of parameters, groups and user data as names of HDF5 links.
#pragma once

#include <string>
#include <string_view>

namespace kzero::detail {

/// Whether the bytes are well-formed UTF-8.
bool is_utf8(std::string_view bytes);

/// The name with '/', '%', control characters and bytes that are not part of
/// well-formed UTF-8 written as %XX, and "." and ".." as %2E and %2E%2E. Two
/// names never give the same link name, and every link name is UTF-8 without a
/// NUL byte.
std::string link_name(std::string_view name);

/// The reverse. What is no %XX stays as it is.
std::string name_of_link(std::string_view link);

}  // namespace kzero::detail
