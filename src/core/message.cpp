// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "core/message.hpp"

namespace kzero::detail {

void append(std::string& text, Range range) {
  text += concat('[', range.begin, ", ", range.end, ')');
}

void append(std::string& text, std::span<const std::int64_t> extents) {
  text += '(';
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (i > 0) text += ", ";
    append(text, extents[i]);
  }
  text += ')';
}

std::string quoted(std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\"";
  for (const char character : name) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      text += '\\';
      text += character;
    } else if (code < 0x20 || code == 0x7f) {
      text += "\\x";
      text += digits[code >> 4];
      text += digits[code & 0xf];
    } else {
      text += character;
    }
  }
  text += '"';
  return text;
}

std::string bytes(std::int64_t count) {
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
  if (count < 1024) return counted(count, "byte");
  std::size_t unit = 0;
  std::int64_t scale = 1024;
  while (count / scale >= 1024) {
    scale *= 1024;
    ++unit;
  }
  const std::int64_t whole = count / scale;
  // First to 1024ths, so that ten times the rest cannot overflow.
  const std::int64_t tenth = (count % scale) / (scale / 1024) * 10 / 1024;
  return tenth == 0 ? concat(whole, ' ', units[unit])
                    : concat(whole, '.', tenth, ' ', units[unit]);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return concat(count, ' ', noun, count == 1 ? "" : "s");
}

}  // namespace kzero::detail
