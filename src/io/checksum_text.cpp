// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/checksum_text.hpp"

#include <charconv>
#include <kzero/error.hpp>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

constexpr int hexadecimal = 16;

}  // namespace

std::string checksum_text(std::uint64_t value) {
  std::string text(checksum_digits, '0');
  for (std::size_t i = checksum_digits; value > 0; value >>= 4)
    text[--i] = "0123456789abcdef"[value & 15];
  return text;
}

std::uint64_t checksum_of(const JsonNode& node) {
  const std::string text = node.text();
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, hexadecimal);
  if (result.ptr != end || result.ec != std::errc() ||
      text != checksum_text(value))
    throw InvalidArgument(concat(node.path(), " is ", detail::quoted(text),
                                 ", expected ", checksum_digits,
                                 " hexadecimal digits"));
  return value;
}

}  // namespace kzero::detail
