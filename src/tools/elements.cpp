// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/elements.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <kzero/dtype.hpp>
#include <kzero/error.hpp>
#include <type_traits>

#include "core/message.hpp"

namespace kzero::tools {

void for_each_piece(
    const detail::CheckpointReader& reader, detail::ArrayIndex index,
    const std::function<void(std::int64_t, std::span<const double>)>& f) {
  const DType dtype =
      reader.layout().parameters[index.parameter].arrays[index.array].dtype;
  std::vector<double> numbers;
  reader.read_pieces(
      index, [&](std::int64_t first, std::span<const std::byte> bytes) {
        visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
          numbers.resize(bytes.size() / sizeof(T));
          for (std::size_t i = 0; i < numbers.size(); ++i) {
            T element;
            std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
            numbers[i] = static_cast<double>(element);
          }
          f(first / static_cast<std::int64_t>(sizeof(T)), numbers);
        });
      });
}

detail::ArrayIndex find_array(const detail::FileLayout& layout,
                              const std::string& name) {
  const std::size_t slash = name.rfind('/');
  std::string alike;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const detail::ParameterLayout& parameter = layout.parameters[i];
    if (parameter.name == name) return {i, 0};
    if (slash != name.npos && parameter.name == name.substr(0, slash))
      for (std::size_t k = 0; k < parameter.arrays.size(); ++k)
        if (parameter.arrays[k].name == name.substr(slash + 1)) return {i, k};
    if (alike.size() < 200 && parameter.name.find(name) != name.npos)
      alike +=
          detail::concat(alike.empty() ? "" : ", ", printable(parameter.name));
  }
  throw CheckpointError(detail::concat(
      "there is no parameter or array ", detail::quoted(name),
      alike.empty() ? "" : ": there are ", alike,
      " (kzero ls lists all; an array is named PARAMETER/ARRAY)"));
}

std::string shape_text(std::span<const std::int64_t> extents) {
  if (extents.empty()) return "scalar";
  std::string text;
  for (const std::int64_t extent : extents)
    text += detail::concat(text.empty() ? "" : " x ", extent);
  return text;
}

std::string number_text(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB",
                                                "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s",
                value, units[unit]);
  return text.data();
}

std::string printable(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      text += c;
      continue;
    }
    std::array<char, 4> code{};
    std::snprintf(code.data(), code.size(), "%%%02X", byte);
    text += code.data();
  }
  return text;
}

std::string text_of(const UserValue& value) {
  return std::visit(
      []<class T>(const T& each) -> std::string {
        if constexpr (std::is_same_v<T, std::string>)
          return detail::quoted(printable(each));
        else if constexpr (requires { each.extents; })
          return "array " + shape_text(each.extents);
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return detail::concat(each.size(), " texts");
        else if constexpr (std::is_same_v<T, double>)
          return number_text(each);
        else
          return detail::concat(each);
      },
      value);
}

}  // namespace kzero::tools
