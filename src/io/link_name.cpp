// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/link_name.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kzero::detail {

namespace {

constexpr std::string_view digits = "0123456789ABCDEF";

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

/// Length of the well-formed UTF-8 sequence at i, or 0. (Unicode 15, table
/// 3-7: no surrogates, nothing past U+10FFFF, no overlong forms.)
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const unsigned lead = byte_at(text, i);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() - i < length) return 0;
  const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte_at(text, i + 1) < lowest || byte_at(text, i + 1) > highest) return 0;
  for (std::size_t k = 2; k < length; ++k)
    if ((byte_at(text, i + k) & 0xc0) != 0x80) return 0;
  return length;
}

void append_escaped(std::string& link, unsigned byte) {
  link += '%';
  link += digits[byte >> 4];
  link += digits[byte & 0xf];
}

bool is_plain(unsigned byte) {
  return byte >= 0x20 && byte != 0x7f && byte != '/' && byte != '%';
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    const std::size_t length = sequence_length(bytes, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string link_name(std::string_view name) {
  std::string link;
  if (name == "." || name == "..") {
    for (std::size_t i = 0; i < name.size(); ++i) append_escaped(link, '.');
    return link;
  }
  std::size_t i = 0;
  while (i < name.size()) {
    const std::size_t length = sequence_length(name, i);
    if (length > 1 || (length == 1 && is_plain(byte_at(name, i)))) {
      link += name.substr(i, length);
      i += length;
    } else {
      append_escaped(link, byte_at(name, i));
      ++i;
    }
  }
  return link;
}

std::string name_of_link(std::string_view link) {
  if (link.find('%') == link.npos) return std::string(link);
  std::string name;
  for (std::size_t i = 0; i < link.size(); ++i) {
    if (link[i] == '%' && link.size() - i > 2) {
      const std::size_t high = digits.find(link[i + 1]);
      const std::size_t low = digits.find(link[i + 2]);
      if (high != digits.npos && low != digits.npos) {
        name += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    name += link[i];
  }
  return name;
}

}  // namespace kzero::detail
