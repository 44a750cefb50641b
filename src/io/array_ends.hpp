// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Where the arrays of a state go to, and where they come from: a file, or
// memory of one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "io/file_layout.hpp"

namespace kzero::detail {

/// Takes the arrays of a state one by one. Local, of one rank.
class ArraySink {
 public:
  /// Takes all elements of one array, in C order. Throws when it cannot.
  virtual void write(const ParameterLayout& parameter, const ArrayLayout& array,
                     const void* data) = 0;

 protected:
  ~ArraySink() = default;
};

/// Has the arrays of a state. Local, of one rank.
class ArraySource {
 public:
  /// Gives all elements of one array, which must have this shape and type.
  /// Throws when it cannot.
  virtual void read(const ParameterLayout& parameter, const ArrayLayout& array,
                    void* data) const = 0;
  /// Likewise, piece by piece: calls f(first byte, bytes). Pieces begin and end
  /// between elements.
  virtual void read_pieces(
      const ParameterLayout& parameter, const ArrayLayout& array,
      const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
      const = 0;

 protected:
  ~ArraySource() = default;
};

}  // namespace kzero::detail
