// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/checksum_text.hpp"

#include <array>
#include <kzero/error.hpp>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

/// What a character stands for; 16 where it is no digit.
constexpr auto digit_of = [] {
  std::array<unsigned char, 256> table{};
  table.fill(16);
  for (std::size_t i = 0; i < digits.size(); ++i)
    table[static_cast<unsigned char>(digits[i])] =
        static_cast<unsigned char>(i);
  return table;
}();

}  // namespace

void write_checksum(std::uint64_t value, char* to) {
  for (std::size_t i = checksum_digits; i-- > 0; value >>= 4)
    to[i] = digits[value & 15];
}

std::string checksum_text(std::uint64_t value) {
  std::string text(checksum_digits, '0');
  write_checksum(value, text.data());
  return text;
}

std::optional<std::uint64_t> checksum_of(std::string_view text) {
  if (text.size() != checksum_digits) return std::nullopt;
  std::uint64_t value = 0;
  unsigned all = 0;
  for (const char each : text) {
    const unsigned digit = digit_of[static_cast<unsigned char>(each)];
    all |= digit;
    value = value << 4 | digit;
  }
  if (all >= 16) return std::nullopt;
  return value;
}

std::uint64_t checksum_of(const JsonNode& node) {
  const std::string text = node.text();
  if (const auto value = checksum_of(text)) return *value;
  throw InvalidArgument(concat(node.path(), " is ", detail::quoted(text),
                               ", expected ", checksum_digits,
                               " hexadecimal digits"));
}

}  // namespace kzero::detail
