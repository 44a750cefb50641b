// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/hdf5_attributes.hpp"

#include "io/hdf5_objects.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

void create_and_write(hid_t object, const std::string& name, hid_t type,
                      std::span<const std::int64_t> extents,
                      const void* value) {
  const Handle space = make_space(extents);
  const Handle list =
      own(H5Pcreate(H5P_ATTRIBUTE_CREATE), H5Pclose, "H5Pcreate");
  check_hdf5(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8),
             "H5Pset_char_encoding");
  const Handle attribute = own(H5Acreate2(object, name.c_str(), type,
                                          space.get(), list.get(), H5P_DEFAULT),
                               H5Aclose, "H5Acreate");
  check_hdf5(H5Awrite(attribute.get(), type, value), "H5Awrite");
}

}  // namespace

Handle string_type(std::string_view text) {
  Handle type = own(H5Tcopy(H5T_C_S1), H5Tclose, "H5Tcopy");
  const bool has_nul = text.find('\0') != text.npos;
  check_hdf5(H5Tset_size(type.get(), has_nul ? text.size() : H5T_VARIABLE),
             "H5Tset_size");
  if (has_nul)
    check_hdf5(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad");
  if (is_utf8(text))
    check_hdf5(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

void write_attribute(hid_t object, const std::string& name,
                     std::int64_t value) {
  create_and_write(object, name, H5T_STD_I64LE, {}, &value);
}

void write_attribute(hid_t object, const std::string& name, double value) {
  create_and_write(object, name, H5T_IEEE_F64LE, {}, &value);
}

void write_attribute(hid_t object, const std::string& name,
                     std::string_view value) {
  const std::string text(value);
  const Handle type = string_type(text);
  give_strings(type.get(), {&text, 1}, [&](const void* buffer) {
    create_and_write(object, name, type.get(), {}, buffer);
  });
}

void write_attribute(hid_t object, const std::string& name,
                     std::span<const std::int64_t> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  create_and_write(object, name, H5T_STD_I64LE, {&count, 1}, values.data());
}

}  // namespace kzero::detail
