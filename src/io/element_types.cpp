// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/element_types.hpp"

#include <bit>
#include <cstddef>

namespace kzero::detail {

namespace {

// Files are little-endian, and what is written is the memory as it is.
static_assert(std::endian::native == std::endian::little);

Handle copy_of(hid_t type) { return own(H5Tcopy(type), H5Tclose, "H5Tcopy"); }

/// A float of 2 bytes: the sign, then the exponent, then the mantissa.
Handle small_float(std::size_t exponent_bits, std::size_t mantissa_bits,
                   std::size_t exponent_bias) {
  Handle type = copy_of(H5T_IEEE_F32LE);
  // The fields first: they must lie within the size at any time.
  check_hdf5(H5Tset_fields(type.get(), 15, mantissa_bits, exponent_bits, 0,
                           mantissa_bits),
             "H5Tset_fields");
  check_hdf5(H5Tset_size(type.get(), 2), "H5Tset_size");
  check_hdf5(H5Tset_ebias(type.get(), exponent_bias), "H5Tset_ebias");
  return type;
}

}  // namespace

ElementTypes::ElementTypes() {
  types_[static_cast<std::size_t>(DType::float16)] = small_float(5, 10, 15);
  types_[static_cast<std::size_t>(DType::bfloat16)] = small_float(8, 7, 127);
  types_[static_cast<std::size_t>(DType::float32)] = copy_of(H5T_IEEE_F32LE);
  types_[static_cast<std::size_t>(DType::float64)] = copy_of(H5T_IEEE_F64LE);
}

}  // namespace kzero::detail
