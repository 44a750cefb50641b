// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/hdf5_attributes.hpp"

#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/hdf5_objects.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

struct Attribute {
  Handle id;
  Handle type;
  std::vector<std::int64_t> extents;
};

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

Attribute open_attribute(hid_t object, const std::string& name) {
  if (!has_attribute(object, name))
    throw CheckpointError(
        concat("the attribute ", detail::quoted(name), " is missing"));
  Attribute attribute;
  attribute.id =
      own(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, "H5Aopen");
  attribute.type =
      own(H5Aget_type(attribute.id.get()), H5Tclose, "H5Aget_type");
  const Handle space =
      own(H5Aget_space(attribute.id.get()), H5Sclose, "H5Aget_space");
  attribute.extents = extents_of(space.get());
  return attribute;
}

[[noreturn]] void throw_kind(const std::string& name, const char* expected) {
  throw CheckpointError(
      concat("the attribute ", detail::quoted(name), " is not ", expected));
}

bool has_type(const Attribute& attribute, hid_t type) {
  return check_hdf5(H5Tequal(attribute.type.get(), type), "H5Tequal") > 0;
}

void read_into(const Attribute& attribute, void* value) {
  check_hdf5(H5Aread(attribute.id.get(), attribute.type.get(), value),
             "H5Aread");
}

extern "C" herr_t take_attribute_name(hid_t, const char* name,
                                      const H5A_info_t*, void* names) {
  try {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;
  }
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

StringBuffer::StringBuffer(hid_t type, std::int64_t count)
    : count_(static_cast<std::size_t>(count)) {
  if (H5Tget_class(type) != H5T_STRING)
    throw CheckpointError("a string is expected, something else was found");
  if (check_hdf5(H5Tis_variable_str(type), "H5Tis_variable_str") > 0) {
    variable_.assign(count_, nullptr);
  } else {
    width_ = H5Tget_size(type);
    if (width_ == 0) throw_hdf5("H5Tget_size", SourceLine::current());
    fixed_.resize(count_ * width_);
  }
}

StringBuffer::~StringBuffer() {
  for (char* pointer : variable_)
    if (pointer != nullptr) H5free_memory(pointer);
}

void* StringBuffer::data() {
  if (width_ == 0) return variable_.data();
  return fixed_.data();
}

std::vector<std::string> StringBuffer::strings() const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count_; ++i) {
    if (width_ > 0)
      texts.emplace_back(fixed_.data() + i * width_, width_);
    else
      texts.emplace_back(variable_[i] == nullptr ? "" : variable_[i]);
  }
  return texts;
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

void rewrite_attribute(hid_t object, const std::string& name,
                       std::int64_t value) {
  const Attribute attribute = open_attribute(object, name);
  check_hdf5(H5Awrite(attribute.id.get(), attribute.type.get(), &value),
             "H5Awrite");
}

bool has_attribute(hid_t object, const std::string& name) {
  return check_hdf5(H5Aexists(object, name.c_str()), "H5Aexists") > 0;
}

std::vector<std::string> attribute_names(hid_t object) {
  std::vector<std::string> names;
  check_hdf5(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr,
                         take_attribute_name, &names),
             "H5Aiterate");
  return names;
}

std::int64_t read_integer(hid_t object, const std::string& name) {
  const Attribute attribute = open_attribute(object, name);
  if (!has_type(attribute, H5T_STD_I64LE) || !attribute.extents.empty())
    throw_kind(name, "a 64-bit integer");
  std::int64_t value = 0;
  read_into(attribute, &value);
  return value;
}

std::vector<std::int64_t> read_integers(hid_t object, const std::string& name) {
  const Attribute attribute = open_attribute(object, name);
  if (!has_type(attribute, H5T_STD_I64LE) || attribute.extents.size() != 1)
    throw_kind(name, "a list of 64-bit integers");
  std::vector<std::int64_t> values(
      static_cast<std::size_t>(attribute.extents[0]));
  if (!values.empty()) read_into(attribute, values.data());
  return values;
}

double read_number(hid_t object, const std::string& name) {
  const Attribute attribute = open_attribute(object, name);
  if (!has_type(attribute, H5T_IEEE_F64LE) || !attribute.extents.empty())
    throw_kind(name, "a 64-bit float");
  double value = 0;
  read_into(attribute, &value);
  return value;
}

std::string read_text(hid_t object, const std::string& name) {
  const Attribute attribute = open_attribute(object, name);
  if (H5Tget_class(attribute.type.get()) != H5T_STRING ||
      !attribute.extents.empty())
    throw_kind(name, "a string");
  return take_strings(attribute.type.get(), 1,
                      [&](void* buffer) { read_into(attribute, buffer); })
      .front();
}

}  // namespace kzero::detail
