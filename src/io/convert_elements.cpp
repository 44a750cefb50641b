// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/convert_elements.hpp"

#include <cstddef>
#include <cstring>

namespace kzero::detail {

namespace {

/// What arithmetic is done in.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, float, T>;

template <class From, class To>
void convert(const std::byte* source, std::byte* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    From from;
    // Arrays of several types lie side by side in a file.
    std::memcpy(&from, source + i * std::int64_t{sizeof from}, sizeof from);
    const To to(static_cast<Wide<To>>(static_cast<Wide<From>>(from)));
    std::memcpy(out + i * std::int64_t{sizeof to}, &to, sizeof to);
  }
}

}  // namespace

void convert_elements(DType from, const void* source, DType to, void* out,
                      std::int64_t count) {
  visit_dtype(from, [&]<class From>(std::type_identity<From>) {
    visit_dtype(to, [&]<class To>(std::type_identity<To>) {
      convert<From, To>(static_cast<const std::byte*>(source),
                        static_cast<std::byte*>(out), count);
    });
  });
}

}  // namespace kzero::detail
