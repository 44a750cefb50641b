// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What is looked at when a parameter in the caller's own memory is declared.
#pragma once

#include <kzero/parameter_set.hpp>
#include <string_view>

namespace kzero::detail {

/// The parameter's memory, with all strides; without the gradient where it is
/// frozen. Sets the types in the options. gradient is null where none was
/// given. Throws InvalidArgument.
ExternalStorage checked_external(std::string_view name, ExternalArray value,
                                 const ExternalArray* gradient,
                                 ParameterOptions& options);

/// Throws InvalidArgument when two names of one storage were declared with
/// different memory.
void require_same_memory(const ParameterInfo& tied,
                         const ParameterInfo& target);

}  // namespace kzero::detail
