// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <kzero/error.hpp>
#include <set>
#include <utility>

#include "core/message.hpp"

namespace kzero::tools {

namespace {

using detail::concat;

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::int64_t longest = std::int64_t{1} << 20;
constexpr std::size_t alignment = 64;
/// NumPy's own limit.
constexpr std::size_t most_extents = 64;

constexpr std::array<std::pair<std::string_view, TensorType>, 4> types = {
    {{"f2", TensorType::float16},
     {"f4", TensorType::float32},
     {"f8", TensorType::float64},
     {"i8", TensorType::int64}}};

/// Reads a literal of Python's from its beginning to its end.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  NpyHeader header() {
    NpyHeader header;
    std::set<std::string> keys;
    expect('{');
    while (!takes('}')) {
      const std::string key = text();
      expect(':');
      if (!keys.insert(key).second)
        throw InvalidArgument(concat("it has ", detail::quoted(key), " twice"));
      if (key == "descr")
        header.type = text();
      else if (key == "fortran_order")
        header.fortran_order = truth();
      else if (key == "shape")
        header.extents = numbers();
      else
        throw InvalidArgument(
            concat("it has ", detail::quoted(key), ", which no array has"));
      if (!takes(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!rest_.empty()) throw InvalidArgument("it goes on behind its end");
    if (keys.size() != 3)
      throw InvalidArgument("it has not descr, fortran_order and shape");
    return header;
  }

 private:
  void skip_spaces() {
    rest_.remove_prefix(
        std::min(rest_.find_first_not_of(" \t\r\n\f"), rest_.size()));
  }

  bool takes(char c) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!takes(c))
      throw InvalidArgument(
          concat("expected ", detail::quoted(std::string_view(&c, 1)), " at ",
                 detail::quoted(rest_.substr(0, 20))));
  }

  /// In single or double quotes. Types and keys have nothing to escape.
  std::string text() {
    const char quote = takes('"') ? '"' : '\'';
    if (quote == '\'' && !takes('\''))
      throw InvalidArgument(concat("expected a text at ",
                                   detail::quoted(rest_.substr(0, 20)),
                                   ": arrays of records are not read"));
    const std::size_t end = rest_.find(quote);
    if (end == rest_.npos) throw InvalidArgument("a text has no end");
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool truth() {
    skip_spaces();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    throw InvalidArgument("fortran_order is neither True nor False");
  }

  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!takes(')')) {
      values.push_back(number());
      if (values.size() > most_extents)
        throw InvalidArgument("its shape has more extents than arrays have");
      if (takes(',')) continue;
      expect(')');
      break;
    }
    return values;
  }

  std::int64_t number() {
    skip_spaces();
    std::int64_t value = -1;
    const auto result =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (result.ec != std::errc() || value < 0)
      throw InvalidArgument("the shape has what is no number of elements");
    rest_.remove_prefix(static_cast<std::size_t>(result.ptr - rest_.data()));
    // Python 2 wrote long integers so.
    if (rest_.starts_with('L')) rest_.remove_prefix(1);
    return value;
  }

  std::string_view rest_;
};

/// Bytes of the length of the dictionary.
std::size_t length_bytes(std::string_view prelude) {
  return prelude[magic.size()] == 1 ? 2 : 4;
}

}  // namespace

std::int64_t npy_header_bytes(std::string_view prelude) {
  if (std::ssize(prelude) < npy_prelude_bytes || !prelude.starts_with(magic))
    throw InvalidArgument("it is no array of NumPy's");
  const int major = static_cast<unsigned char>(prelude[magic.size()]);
  if (major < 1 || major > 3)
    throw InvalidArgument(
        concat("its header has the version ", major, ", expected 1 to 3"));
  const std::size_t begin = magic.size() + 2;
  std::int64_t length = 0;
  for (std::size_t i = 0; i < length_bytes(prelude); ++i)
    length |= std::int64_t{static_cast<unsigned char>(prelude[begin + i])}
              << (8 * i);
  if (length > longest)
    throw InvalidArgument(concat("its header would have ", length, " bytes"));
  return static_cast<std::int64_t>(begin + length_bytes(prelude)) + length;
}

NpyHeader parse_npy_header(std::string_view header) {
  if (npy_header_bytes(header) != std::ssize(header))
    throw InvalidArgument("its header is cut");
  header.remove_prefix(magic.size() + 2 + length_bytes(header));
  NpyHeader parsed = Literal(header).header();
  if (parsed.type.size() < 2)
    throw InvalidArgument(
        concat("it has the type ", detail::quoted(parsed.type)));
  return parsed;
}

std::optional<TensorType> type_of(const NpyHeader& header) {
  if (header.type.front() != '<' && header.type.front() != '>')
    return std::nullopt;
  const auto known =
      std::ranges::find(types, std::string_view(header.type).substr(1),
                        &std::pair<std::string_view, TensorType>::first);
  if (known == types.end()) return std::nullopt;
  return known->second;
}

std::string npy_header(std::string_view type,
                       std::span<const std::int64_t> extents) {
  std::string shape;
  for (const std::int64_t extent : extents) shape += concat(extent, ", ");
  // One number is a tuple with its comma alone.
  if (extents.size() > 1) shape.resize(shape.size() - 2);
  std::string text =
      concat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
             shape, "), }");
  constexpr std::size_t prelude = magic.size() + 4;
  const std::size_t all =
      (prelude + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.resize(all - prelude - 1, ' ');
  text += '\n';
  return concat(magic, '\1', '\0', static_cast<char>(text.size() & 255),
                static_cast<char>(text.size() >> 8), text);
}

std::string_view npy_type(TensorType type) {
  static constexpr std::array<std::string_view, 4> names = {"<f2", "<f4", "<f8",
                                                            "<i8"};
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i].second == type) return names[i];
  throw InvalidArgument("NumPy has no bfloat16");
}

}  // namespace kzero::tools
