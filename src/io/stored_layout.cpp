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
  // By the array's number, the last parameter first: as they lie in files, so
  // that there is nothing to sort.
  std::vector<std::vector<Stretch>> columns;
  for (std::size_t i = stored.arrays.size(); i-- > 0;) {
    const ParameterLayout& parameter = stored.layout.parameters[i];
    const std::span<const StoredArray> arrays = stored.arrays[i];
    if (columns.size() < arrays.size()) columns.resize(arrays.size());
    for (std::size_t k = 0; k < arrays.size(); ++k)
      columns[k].push_back(
          {arrays[k].place, array_bytes(parameter, parameter.arrays[k].dtype)});
  }
  std::vector<Stretch> known;
  known.reserve(stored.arrays.all().size() + stored.user.size() + 1);
  for (const auto& column : columns)
    known.insert(known.end(), column.begin(), column.end());
  for (const auto& [name, array] : stored.user)
    known.push_back(
        {array.place, array_bytes(stored.layout.content.user.at(name))});
  std::erase_if(known, [](const Stretch& each) { return each.bytes == 0; });
  if (!std::ranges::is_sorted(known, {}, &Stretch::place))
    std::ranges::sort(known, {}, &Stretch::place);
  return known;
}

std::vector<Stretch> known_stretches(const StoredLayout& stored,
                                     const FileHeader& header) {
  std::vector<Stretch> known = array_stretches(stored);
  const Stretch manifest{header.manifest_place, header.manifest_bytes};
  known.insert(
      std::ranges::upper_bound(known, manifest.place, {}, &Stretch::place),
      manifest);
  return known;
}

std::vector<Stretch> metadata_stretches(const StoredLayout& stored,
                                        const FileHeader& header) {
  std::vector<Stretch> rest;
  std::int64_t begin = header_bytes;
  for (const Stretch& each : known_stretches(stored, header)) {
    if (each.place > begin) rest.push_back({begin, each.place - begin});
    begin = std::max(begin, each.place + each.bytes);
  }
  if (begin < header.file_bytes)
    rest.push_back({begin, header.file_bytes - begin});
  return rest;
}

}  // namespace kzero::detail
