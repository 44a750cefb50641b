// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/user_data.hpp"

#include <algorithm>
#include <functional>
#include <kzero/error.hpp>
#include <limits>
#include <utility>

#include "core/message.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/hdf5_objects.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

constexpr std::size_t most_dimensions = H5S_MAX_RANK;

hid_t type_of(std::int64_t) { return H5T_STD_I64LE; }
hid_t type_of(double) { return H5T_IEEE_F64LE; }
hid_t type_of(float) { return H5T_IEEE_F32LE; }

/// The product of the extents; -1 for negative ones and for too large ones.
std::int64_t elements(std::span<const std::int64_t> extents) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  if (std::ranges::find(extents, 0) != extents.end()) {
    const bool negative =
        std::ranges::any_of(extents, [](std::int64_t n) { return n < 0; });
    return negative ? -1 : 0;
  }
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0 || product > most / extent) return -1;
    product *= extent;
  }
  return product;
}

/// Says what is wrong with a value, or nothing.
struct Problem {
  std::string operator()(std::int64_t) const { return {}; }
  std::string operator()(double) const { return {}; }
  std::string operator()(const std::string&) const { return {}; }

  std::string operator()(const std::vector<std::string>& texts) const {
    for (const std::string& text : texts)
      if (text.find('\0') != text.npos)
        return concat("its string ", detail::quoted(text),
                      " has a NUL byte, which a list cannot hold");
    return {};
  }

  template <class T>
  std::string operator()(const UserArray<T>& array) const {
    if (array.extents.empty())
      return "it is an array without extents: give a number";
    if (array.extents.size() > most_dimensions)
      return concat("it has ", array.extents.size(), " dimensions, at most ",
                    most_dimensions, " can be stored");
    const std::int64_t size = elements(array.extents);
    if (size < 0 || static_cast<std::size_t>(size) != array.values.size())
      return concat(
          "its extents ", std::span(array.extents), " do not go with ",
          counted(static_cast<std::int64_t>(array.values.size()), "value"));
    return {};
  }
};

class Writer {
 public:
  Writer(hid_t group, const std::string& link) : group_(group), link_(link) {}

  template <class Number>
  void operator()(Number value) const {
    write_array(type_of(value), {}, &value);
  }

  template <class T>
  void operator()(const UserArray<T>& array) const {
    write_array(type_of(T{}), array.extents, array.values.data());
  }

  void operator()(const std::string& text) const {
    write_strings(string_type(text), {}, {&text, 1});
  }

  void operator()(const std::vector<std::string>& texts) const {
    const auto count = static_cast<std::int64_t>(texts.size());
    const bool utf8 = std::ranges::all_of(
        texts, [](const std::string& text) { return is_utf8(text); });
    write_strings(string_type(utf8 ? "" : "\xff"), {&count, 1}, texts);
  }

 private:
  void write_array(hid_t type, std::span<const std::int64_t> extents,
                   const void* values) const {
    const Handle dataset = create_dataset(group_, link_, type, extents);
    write_dataset(dataset.get(), {type, extents}, values);
  }

  void write_strings(const Handle& type, std::span<const std::int64_t> extents,
                     std::span<const std::string> texts) const {
    const Handle dataset = create_dataset(group_, link_, type.get(), extents);
    give_strings(type.get(), texts, [&](const void* buffer) {
      check_hdf5(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL,
                          H5P_DEFAULT, buffer),
                 "H5Dwrite");
    });
  }

  hid_t group_;
  const std::string& link_;
};

template <class T>
UserArray<T> read_array(hid_t dataset, std::vector<std::int64_t> extents) {
  UserArray<T> array;
  array.values.resize(static_cast<std::size_t>(elements(extents)));
  read_dataset(dataset, {type_of(T{}), extents}, array.values.data());
  array.extents = std::move(extents);
  return array;
}

UserValue read_strings(hid_t dataset, hid_t type, std::size_t rank,
                       std::int64_t count) {
  std::vector<std::string> texts = take_strings(type, count, [&](void* buffer) {
    check_hdf5(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer),
               "H5Dread");
  });
  if (rank == 0) return std::move(texts.front());
  return texts;
}

UserValue read_value(hid_t group, const std::string& link) {
  const Handle dataset = open_dataset(group, link);
  const Handle type = own(H5Dget_type(dataset.get()), H5Tclose, "H5Dget_type");
  const Handle space =
      own(H5Dget_space(dataset.get()), H5Sclose, "H5Dget_space");
  std::vector<std::int64_t> extents = extents_of(space.get());
  const std::int64_t count = elements(extents);
  if (count < 0) throw CheckpointError("its shape is impossible");
  const auto is = [&](hid_t expected) {
    return check_hdf5(H5Tequal(type.get(), expected), "H5Tequal") > 0;
  };
  const bool scalar = extents.empty();
  if (H5Tget_class(type.get()) == H5T_STRING && extents.size() < 2)
    return read_strings(dataset.get(), type.get(), extents.size(), count);
  if (is(H5T_STD_I64LE)) {
    auto array = read_array<std::int64_t>(dataset.get(), std::move(extents));
    if (scalar) return array.values.front();
    return array;
  }
  if (is(H5T_IEEE_F64LE)) {
    auto array = read_array<double>(dataset.get(), std::move(extents));
    if (scalar) return array.values.front();
    return array;
  }
  if (is(H5T_IEEE_F32LE) && !scalar)
    return read_array<float>(dataset.get(), std::move(extents));
  throw CheckpointError(
      "it is of none of the types that kzero reads there: 64-bit integers and "
      "floats, arrays of these and of 32-bit floats, strings");
}

}  // namespace

void check_user_data(const UserData& user) {
  for (const auto& [name, value] : user) {
    if (name.empty())
      throw CheckpointError(
          "user data has an entry without a name (expected a name, got \"\"): "
          "give "
          "every entry one");
    const std::string problem = std::visit(Problem(), value);
    if (!problem.empty())
      throw CheckpointError(concat("user data ", detail::quoted(name),
                                   " cannot be stored (", problem, ")"));
  }
}

void write_user_data(hid_t group, const UserData& user) {
  for (const auto& [name, value] : user) {
    const std::string link = link_name(name);
    std::visit(Writer(group, link), value);
  }
}

UserData read_user_data(hid_t group) {
  UserData user;
  for (const std::string& link : link_names(group)) {
    const std::string name = name_of_link(link);
    try {
      if (!user.emplace(name, read_value(group, link)).second)
        throw CheckpointError("two links have this name");
    } catch (const CheckpointError& error) {
      throw CheckpointError(concat("user data ", detail::quoted(name),
                                   " cannot be read (", error.what(), ")"));
    }
  }
  return user;
}

}  // namespace kzero::detail
