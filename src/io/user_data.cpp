// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/user_data.hpp"

#include <algorithm>
#include <functional>
#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "io/element_count.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/hdf5_objects.hpp"
#include "io/link_name.hpp"

namespace kzero::detail {

namespace {

constexpr std::size_t most_dimensions = H5S_MAX_RANK;

hid_t type_of(std::int64_t) { return H5T_STD_I64LE; }
hid_t type_of(double) { return H5T_IEEE_F64LE; }
hid_t type_of(float) { return H5T_IEEE_F32LE; }

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
    const std::int64_t size = element_count(array.extents);
    if (size < 0 || static_cast<std::size_t>(size) != array.values.size())
      return concat(
          "its extents ", std::span(array.extents), " do not go with ",
          counted(static_cast<std::int64_t>(array.values.size()), "value"));
    return {};
  }
};

/// Returns where an array lies; 0 for what is none.
class Writer {
 public:
  Writer(hid_t group, const std::string& link) : group_(group), link_(link) {}

  template <class Number>
  std::int64_t operator()(Number value) const {
    write_array(type_of(value), {}, &value);
    return 0;
  }

  template <class T>
  std::int64_t operator()(const UserArray<T>& array) const {
    return write_array(type_of(T{}), array.extents, array.values.data());
  }

  std::int64_t operator()(const std::string& text) const {
    write_strings(string_type(text), {}, {&text, 1});
    return 0;
  }

  std::int64_t operator()(const std::vector<std::string>& texts) const {
    const auto count = static_cast<std::int64_t>(texts.size());
    const bool utf8 = std::ranges::all_of(
        texts, [](const std::string& text) { return is_utf8(text); });
    write_strings(string_type(utf8 ? "" : "\xff"), {&count, 1}, texts);
    return 0;
  }

 private:
  std::int64_t write_array(hid_t type, std::span<const std::int64_t> extents,
                           const void* values) const {
    const Handle dataset = create_dataset(group_, link_, type, extents);
    write_dataset(dataset.get(), type, values);
    return place_of(dataset.get());
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

std::map<std::string, std::int64_t> write_user_data(hid_t group,
                                                    const UserData& user) {
  std::map<std::string, std::int64_t> places;
  for (const auto& [name, value] : user) {
    const std::string link = link_name(name);
    const std::int64_t place = std::visit(Writer(group, link), value);
    if (place > 0) places.emplace(name, place);
  }
  return places;
}

}  // namespace kzero::detail
