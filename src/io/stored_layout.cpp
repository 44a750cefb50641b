// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/stored_layout.hpp"

#include <algorithm>

#include "io/element_count.hpp"

namespace kzero::detail {

std::int64_t array_bytes(const ParameterLayout& parameter, DType dtype) {
  return element_count(parameter.extents) * size_of(dtype);
}

std::int64_t array_bytes(const UserValue& value) {
  return std::visit(
      []<class T>(const T& each) -> std::int64_t {
        if constexpr (requires { each.extents; })
          return element_count(each.extents) *
                 static_cast<std::int64_t>(sizeof(each.values[0]));
        else
          return 0;
      },
      value);
}

std::vector<Stretch> array_stretches(const StoredLayout& stored) {
  std::vector<Stretch> stretches;
  const auto add = [&](std::int64_t place, std::int64_t bytes) {
    if (bytes > 0) stretches.push_back({place, bytes});
  };
  for (std::size_t i = 0; i < stored.arrays.size(); ++i) {
    const ParameterLayout& parameter = stored.layout.parameters[i];
    for (std::size_t k = 0; k < stored.arrays[i].size(); ++k)
      add(stored.arrays[i][k].place,
          array_bytes(parameter, parameter.arrays[k].dtype));
  }
  for (const auto& [name, array] : stored.user)
    add(array.place, array_bytes(stored.layout.content.user.at(name)));
  std::ranges::sort(stretches, {}, &Stretch::place);
  return stretches;
}

std::vector<Stretch> metadata_stretches(const StoredLayout& stored,
                                        const FileHeader& header) {
  std::vector<Stretch> known = array_stretches(stored);
  known.push_back({header.manifest_place, header.manifest_bytes});
  std::ranges::sort(known, {}, &Stretch::place);
  std::vector<Stretch> rest;
  std::int64_t begin = header_bytes;
  for (const Stretch& each : known) {
    if (each.place > begin) rest.push_back({begin, each.place - begin});
    begin = std::max(begin, each.place + each.bytes);
  }
  if (begin < header.file_bytes)
    rest.push_back({begin, header.file_bytes - begin});
  return rest;
}

}  // namespace kzero::detail
