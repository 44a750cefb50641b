// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include "io/element_types.hpp"

using kzero::DType;
using kzero::detail::ElementTypes;
using kzero::detail::Handle;

namespace {

struct Fields {
  std::size_t sign, exponent, exponent_size, mantissa, mantissa_size, bias,
      bytes;
  bool operator==(const Fields&) const = default;
};

Fields fields_of(hid_t type) {
  Fields fields = {};
  H5Tget_fields(type, &fields.sign, &fields.exponent, &fields.exponent_size,
                &fields.mantissa, &fields.mantissa_size);
  fields.bias = H5Tget_ebias(type);
  fields.bytes = H5Tget_size(type);
  return fields;
}

TEST(ElementTypes, AreTheIeeeLayouts) {
  const ElementTypes types;
  EXPECT_EQ(fields_of(types[DType::float16]),
            (Fields{15, 10, 5, 0, 10, 15, 2}));
  EXPECT_EQ(fields_of(types[DType::bfloat16]),
            (Fields{15, 7, 8, 0, 7, 127, 2}));
  EXPECT_GT(H5Tequal(types[DType::float32], H5T_IEEE_F32LE), 0);
  EXPECT_GT(H5Tequal(types[DType::float64], H5T_IEEE_F64LE), 0);
}

// HDF5's own conversion knows the value of every code: what h5py shows.
TEST(ElementTypes, MeanTheSameNumbersToHdf5) {
  const ElementTypes types;
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
      union {
        std::uint16_t bits;
        float value;
      } converted = {};
      converted.bits = static_cast<std::uint16_t>(code);
      float expected = 0;
      kzero::float16 half;
      kzero::bfloat16 brain;
      half.bits = brain.bits = static_cast<std::uint16_t>(code);
      expected = dtype == DType::float16 ? float(half) : float(brain);
      ASSERT_GE(H5Tconvert(types[dtype], H5T_IEEE_F32LE, 1, &converted, nullptr,
                           H5P_DEFAULT),
                0);
      if (expected != expected)
        EXPECT_NE(converted.value, converted.value) << code;
      else
        EXPECT_EQ(kzero::detail::float_bits(converted.value),
                  kzero::detail::float_bits(expected))
            << code;
    }
  }
}

}  // namespace
