// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checksums as header and manifest write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/json_node.hpp"

namespace kzero::detail {

inline constexpr std::size_t checksum_digits = 16;

/// So many hexadecimal digits, in lower case.
std::string checksum_text(std::uint64_t value);
void write_checksum(std::uint64_t value, char* digits);

/// None for what is not exactly that.
std::optional<std::uint64_t> checksum_of(std::string_view text);
/// Throws InvalidArgument for it.
std::uint64_t checksum_of(const JsonNode& node);

}  // namespace kzero::detail
