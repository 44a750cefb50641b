// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checksums as header and manifest write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/json_node.hpp"

namespace kzero::detail {

inline constexpr std::size_t checksum_digits = 16;

/// So many hexadecimal digits, in lower case.
std::string checksum_text(std::uint64_t value);

/// Throws InvalidArgument for what is not exactly that.
std::uint64_t checksum_of(const JsonNode& node);

}  // namespace kzero::detail
