// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What is looked at when a parameter is declared. All throw InvalidArgument
// that names the parameter.
#pragma once

#include <cstdint>
#include <kzero/parameter_set.hpp>
#include <span>
#include <string_view>

namespace kzero::detail {

inline constexpr std::int64_t maximum_bytes = std::int64_t{1} << 62;

[[noreturn]] void refuse_parameter(std::string_view name,
                                   std::string_view problem);

void check_dtypes(std::string_view name, DType dtype, DType gradient_dtype);

/// The product of the extents.
std::int64_t checked_size(std::string_view name,
                          std::span<const std::int64_t> extents, DType dtype);

void check_options(std::string_view name, const ParameterOptions& options);

/// Two names of one storage differ in nothing else.
void require_same(const ParameterInfo& tied, const ParameterInfo& target);

}  // namespace kzero::detail
