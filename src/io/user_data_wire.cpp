// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/user_data_wire.hpp"

#include <cstdint>
#include <kzero/error.hpp>
#include <string>
#include <utility>

namespace kzero::detail {

namespace {

template <class Value>
void put_value(WireWriter& writer, const Value& value) {
  writer.put(value);
}

template <class T>
void put_value(WireWriter& writer, const UserArray<T>& array) {
  writer.put(array.extents);
  writer.put(array.values);
}

template <class Value>
void take_value(WireReader& reader, Value& value) {
  reader.take(value);
}

template <class T>
void take_value(WireReader& reader, UserArray<T>& array) {
  reader.take(array.extents);
  reader.take(array.values);
}

/// A value of the alternative with this index.
template <std::size_t I = 0>
UserValue take_alternative(WireReader& reader, std::int64_t index) {
  if constexpr (I < std::variant_size_v<UserValue>) {
    if (index != static_cast<std::int64_t>(I))
      return take_alternative<I + 1>(reader, index);
    UserValue value(std::in_place_index<I>);
    take_value(reader, std::get<I>(value));
    return value;
  } else {
    throw CommunicationError("user data of an unknown type was received");
  }
}

}  // namespace

void put(WireWriter& writer, const UserData& user) {
  writer.put(static_cast<std::int64_t>(user.size()));
  for (const auto& [name, value] : user) {
    writer.put(name);
    writer.put(static_cast<std::int64_t>(value.index()));
    std::visit([&](const auto& each) { put_value(writer, each); }, value);
  }
}

void take(WireReader& reader, UserData& user) {
  std::int64_t count = 0;
  reader.take(count);
  for (std::int64_t i = 0; i < count; ++i) {
    std::string name;
    std::int64_t index = 0;
    reader.take(name);
    reader.take(index);
    user.insert_or_assign(std::move(name), take_alternative(reader, index));
  }
}

}  // namespace kzero::detail
