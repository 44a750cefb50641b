// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The header of an array of NumPy's: a magic text, a version, and a Python
// dictionary of type, order and shape
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tensors.hpp"

namespace kzero::tools {

/// Magic, version and the length of the dictionary.
inline constexpr std::int64_t npy_prelude_bytes = 12;

/// How many bytes the header has, given its first npy_prelude_bytes. Throws
/// InvalidArgument for what is no header, or one of more than a MiB.
std::int64_t npy_header_bytes(std::string_view prelude);

struct NpyHeader {
  /// "<f4": byte order, kind and bytes of an element.
  std::string type;
  bool fortran_order = false;
  std::vector<std::int64_t> extents;

  bool is_big_endian() const { return type.front() == '>'; }
};

/// Of a whole header. Throws InvalidArgument.
NpyHeader parse_npy_header(std::string_view header);

/// Nothing for a type that no checkpoint has.
std::optional<TensorType> type_of(const NpyHeader& header);

/// A whole header. type: as in NpyHeader.
std::string npy_header(std::string_view type,
                       std::span<const std::int64_t> extents);
/// NumPy has no bfloat16. Throws InvalidArgument for it.
std::string_view npy_type(TensorType type);

}  // namespace kzero::tools
