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

/// Where HDF5 puts the strings that it reads.
class StringBuffer {
 public:
  /// Throws CheckpointError when the type is no string.
  StringBuffer(hid_t type, std::int64_t count);
  ~StringBuffer();
  StringBuffer(const StringBuffer&) = delete;
  StringBuffer& operator=(const StringBuffer&) = delete;

  void* data();
  std::vector<std::string> strings() const;

 private:
  std::size_t count_ = 0;
  std::size_t width_ = 0;  // 0: of any length
  std::vector<char> fixed_;
  std::vector<char*> variable_;
};

/// Reads count strings by read(void*).
template <class Read>
std::vector<std::string> take_strings(hid_t type, std::int64_t count,
                                      Read&& read) {
  StringBuffer buffer(type, count);
  if (count > 0) read(buffer.data());
  return buffer.strings();
}

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

/// Gives an integer attribute, which must exist, another value.
void rewrite_attribute(hid_t object, const std::string& name,
                       std::int64_t value);

bool has_attribute(hid_t object, const std::string& name);
std::vector<std::string> attribute_names(hid_t object);

/// These throw CheckpointError when the attribute is missing or of another
/// type or shape: HDF5 converts nothing.
std::int64_t read_integer(hid_t object, const std::string& name);
std::vector<std::int64_t> read_integers(hid_t object, const std::string& name);
double read_number(hid_t object, const std::string& name);
std::string read_text(hid_t object, const std::string& name);

}  // namespace kzero::detail
