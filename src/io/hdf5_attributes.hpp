// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Strings and attributes, as the format uses them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5_call.hpp"

namespace kzero::detail {

/// Type of a string: of any length, ended by a NUL byte; or, where the text
/// itself has one, of exactly its length. Marked as UTF-8 where it is.
Handle string_type(std::string_view text);

/// Writes strings that all go with the type by write(const void*).
template <class Write>
void give_strings(hid_t type, std::span<const std::string> texts,
                  Write&& write) {
  if (texts.empty()) return;
  if (check_hdf5(H5Tis_variable_str(type), "H5Tis_variable_str") == 0) {
    write(static_cast<const void*>(texts.front().data()));
    return;
  }
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  write(static_cast<const void*>(pointers.data()));
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value);
void write_attribute(hid_t object, const std::string& name, double value);
void write_attribute(hid_t object, const std::string& name,
                     std::string_view value);
void write_attribute(hid_t object, const std::string& name,
                     std::span<const std::int64_t> values);

}  // namespace kzero::detail
