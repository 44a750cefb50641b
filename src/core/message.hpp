// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Builds the text of errors and log messages. Nothing here depends on the
// locale: every rank writes the same text for the same values.
#pragma once

#include <charconv>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/range.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace kzero::detail {

inline void append(std::string& text, std::string_view part) { text += part; }

inline void append(std::string& text, char part) { text += part; }

inline void append(std::string& text, DType part) { text += to_string(part); }

/// Floating-point numbers get the fewest digits that tell them from every
/// other number of their type: "expected and got" never look equal.
/// A template, because a literal would rather become a bool than a view.
template <class T>
requires std::is_arithmetic_v<T>
void append(std::string& text, T part) {
  if constexpr (std::is_same_v<T, bool>) {
    text += part ? "true" : "false";
  } else {
    char buffer[64];
    const auto result = std::to_chars(buffer, buffer + sizeof(buffer), part);
    text.append(buffer, result.ptr);
  }
}

/// A range as "[begin, end)".
void append(std::string& text, Range range);

/// Extents as "(2, 3)".
void append(std::string& text, std::span<const std::int64_t> extents);

/// All parts, one after another: text, characters, numbers, number types,
/// ranges and extents.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (append(text, parts), ...);
  return text;
}

/// The name in double quotes on one line. Control characters, quotes and
/// backslashes are escaped, other bytes are left as they are (UTF-8).
std::string quoted(std::string_view name);

/// "240 bytes", "25 MiB", "1.5 GiB": cut to one decimal place, never rounded
/// up.
std::string bytes(std::int64_t count);

/// "1 rank", "2 ranks".
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace kzero::detail
