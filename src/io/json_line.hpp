// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reads JSON texts of which there are very many, one a line: without making a
// tree of them, which takes several times as long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kzero::detail {

/// Reads one JSON text (RFC 8259) from its beginning to its end. Members throw
/// InvalidArgument, which says where, for what is no JSON or not what is asked
/// for.
class JsonLine {
 public:
  /// text: outlives it. number: of the line, for messages.
  JsonLine(std::string_view text, std::int64_t number)
      : text_(text), number_(number) {}

  /// Calls f(i), which reads it, for each element of a list; returns how many
  /// there were.
  template <class F>
  std::size_t list(F&& f) {
    take('[', "a list");
    std::size_t count = 0;
    if (takes(']')) return count;
    do {
      f(count++);
    } while (takes(','));
    take(']', "',' or ']'");
    return count;
  }

  /// A string; valid until the next one is read.
  std::string_view text();
  std::int64_t integer();
  /// Passes over a value of any kind.
  void skip() { skip_at_depth(1); }
  /// There is nothing behind it.
  void end();

  [[noreturn]] void refuse(std::string_view expected) const;
  std::int64_t number() const { return number_; }

 private:
  void skip_blanks();
  /// Whether the next character, blanks aside, is this one, which is then
  /// behind us.
  bool takes(char character) {
    if (at_ < text_.size() && text_[at_] <= ' ') skip_blanks();
    if (at_ == text_.size() || text_[at_] != character) return false;
    ++at_;
    return true;
  }
  void take(char character, std::string_view expected) {
    if (!takes(character)) refuse(expected);
  }
  void skip_at_depth(int depth);
  void skip_member(int depth);
  void skip_word(std::string_view word);
  void skip_number(std::string_view expected);
  std::size_t skip_digits();
  std::string_view text_with_escapes(std::size_t begin);
  void take_escape();
  unsigned take_code_unit();
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string_view text_;
  std::int64_t number_;
  std::size_t at_ = 0;
  std::string unescaped_;
};

}  // namespace kzero::detail
