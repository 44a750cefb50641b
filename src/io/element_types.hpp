// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The number types of arrays as HDF5 types: IEEE little-endian floats, and
// bfloat16 as a 2-byte float of its own.
#pragma once

#include <array>
#include <kzero/dtype.hpp>

#include "io/hdf5_call.hpp"

namespace kzero::detail {

/// The same type serves in the file and in memory: HDF5 never converts.
class ElementTypes {
 public:
  ElementTypes();

  hid_t operator[](DType dtype) const {
    return types_[static_cast<std::size_t>(dtype)].get();
  }

 private:
  std::array<Handle, 4> types_;
};

}  // namespace kzero::detail
