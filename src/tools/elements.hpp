// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The elements of a checkpoint's arrays as numbers, and texts about them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint_file.hpp"

namespace kzero::tools {

/// Calls f(first element, elements) for all of an array, piece by piece. Throws
/// CheckpointError when they are not as they were written.
void for_each_piece(
    const detail::CheckpointReader& reader, detail::ArrayIndex index,
    const std::function<void(std::int64_t, std::span<const double>)>& f);

/// "PARAMETER" or "PARAMETER/ARRAY", where the array is value by itself. Throws
/// CheckpointError with names that are alike for one that is not there.
detail::ArrayIndex find_array(const detail::FileLayout& layout,
                              const std::string& name);

/// "256 x 256", "scalar".
std::string shape_text(std::span<const std::int64_t> extents);
/// "1.5 MiB".
std::string bytes_text(std::int64_t bytes);
std::string number_text(double value);
/// Names can have any bytes: those that no terminal takes become %XX.
std::string printable(std::string_view name);

/// A value of the caller's; of an array the shape alone.
std::string text_of(const UserValue& value);

}  // namespace kzero::tools
