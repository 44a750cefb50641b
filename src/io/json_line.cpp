// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/json_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

constexpr int deepest = 16;

bool is_digit(char character) { return character >= '0' && character <= '9'; }

/// Whether a byte of a string is none that stands for itself alone: it ends the
/// string, begins an escape, is a control character or part of one past ASCII.
constexpr auto is_special = [] {
  std::array<bool, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte)
    table[byte] = byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\';
  return table;
}();

void append_utf8(std::string& text, unsigned code) {
  const auto put = [&](unsigned byte) { text += static_cast<char>(byte); };
  const auto put_rest = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put_rest(6);
  } else {
    put(0xf0 | code >> 18);
    put_rest(12);
    put_rest(6);
  }
  put_rest(0);
}

}  // namespace

void JsonLine::refuse(std::string_view expected) const {
  constexpr std::size_t shown = 24;
  const std::string_view rest = text_.substr(std::min(at_, text_.size()));
  throw InvalidArgument(concat("line ", number_, " has ",
                               quoted(rest.substr(0, shown)),
                               rest.size() > shown ? "..." : "", " at byte ",
                               at_, ", expected ", expected));
}

void JsonLine::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

void JsonLine::end() {
  skip_blanks();
  if (at_ != text_.size()) refuse("its end");
}

std::string_view JsonLine::text() {
  take('"', "a string");
  const std::size_t begin = at_;
  while (at_ < text_.size() &&
         !is_special[static_cast<unsigned char>(text_[at_])])
    ++at_;
  if (at_ < text_.size() && text_[at_] == '"')
    return text_.substr(begin, at_++ - begin);
  const std::string_view text = text_with_escapes(begin);
  if (!is_utf8(text)) refuse("UTF-8 before it");
  return text;
}

std::string_view JsonLine::text_with_escapes(std::size_t begin) {
  unescaped_ = text_.substr(begin, at_ - begin);
  while (peek() != '"') {
    if (at_ == text_.size() || static_cast<unsigned char>(peek()) < 0x20)
      refuse("the rest of a string");
    if (peek() == '\\')
      take_escape();
    else
      unescaped_ += text_[at_++];
  }
  ++at_;
  return unescaped_;
}

void JsonLine::take_escape() {
  constexpr std::string_view letters = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  ++at_;
  const std::size_t which = letters.find(peek());
  if (at_ < text_.size() && which != letters.npos) {
    unescaped_ += meanings[which];
    ++at_;
    return;
  }
  unsigned code = take_code_unit();
  if (code >= 0xd800 && code < 0xdc00) {
    if (peek() != '\\') refuse("the second half of a pair");
    ++at_;
    const unsigned low = take_code_unit();
    if (low < 0xdc00 || low >= 0xe000)
      refuse("the second half of a pair before it");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    refuse("the first half of a pair before it");
  }
  append_utf8(unescaped_, code);
}

unsigned JsonLine::take_code_unit() {
  constexpr std::int64_t digits = 4;
  if (peek() != 'u') refuse("an escape that JSON knows");
  ++at_;
  const std::string_view text = text_.substr(at_, digits);
  unsigned code = 0;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), code, 16);
  if (result.ptr - text.data() != digits) refuse("four hexadecimal digits");
  at_ += digits;
  return code;
}

std::int64_t JsonLine::integer() {
  skip_blanks();
  const std::size_t begin = at_;
  skip_number("an integer");
  const std::string_view text = text_.substr(begin, at_ - begin);
  std::int64_t value = 0;
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc() && result.ptr == text.data() + text.size())
    return value;
  at_ = begin;
  refuse("an integer");
}

void JsonLine::skip_number(std::string_view expected) {
  const std::size_t begin = at_;
  if (peek() == '-') ++at_;
  const char first = peek();
  const std::size_t digits = skip_digits();
  bool is_number = digits == 1 || (digits > 1 && first != '0');
  if (peek() == '.') {
    ++at_;
    is_number = skip_digits() > 0 && is_number;
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    is_number = skip_digits() > 0 && is_number;
  }
  if (is_number) return;
  at_ = begin;
  refuse(expected);
}

std::size_t JsonLine::skip_digits() {
  const std::size_t begin = at_;
  while (is_digit(peek())) ++at_;
  return at_ - begin;
}

void JsonLine::skip_at_depth(int depth) {
  if (depth > deepest)
    throw InvalidArgument(concat("line ", number_, " is nested deeper than ",
                                 deepest, " levels"));
  skip_blanks();
  switch (peek()) {
    case '[':
      list([&](std::size_t) { skip_at_depth(depth + 1); });
      break;
    case '{':
      ++at_;
      if (takes('}')) break;
      do {
        skip_member(depth);
      } while (takes(','));
      take('}', "',' or '}'");
      break;
    case '"':
      static_cast<void>(text());
      break;
    case 't':
      skip_word("true");
      break;
    case 'f':
      skip_word("false");
      break;
    case 'n':
      skip_word("null");
      break;
    default:
      skip_number("a value");
  }
}

void JsonLine::skip_member(int depth) {
  static_cast<void>(text());
  take(':', "':'");
  skip_at_depth(depth + 1);
}

void JsonLine::skip_word(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) refuse(word);
  at_ += word.size();
}

}  // namespace kzero::detail
