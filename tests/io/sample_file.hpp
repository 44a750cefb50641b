// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A small checkpoint file without an optimizer: all types, all kinds of shapes
// and names.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint_file.hpp"

namespace kzero::test {

using Bytes = std::vector<char>;

/// Elements of each array, by "parameter|array".
using Contents = std::map<std::string, Bytes>;

template <class F>
void for_each_array(const kzero::detail::FileLayout& layout, F&& f) {
  for (const auto& parameter : layout.parameters) {
    std::int64_t size = 1;
    for (const std::int64_t extent : parameter.extents) size *= extent;
    for (const auto& array : parameter.arrays)
      f(parameter, array, parameter.name + "|" + array.name, size);
  }
}

inline kzero::detail::FileLayout sample_layout() {
  using enum kzero::DType;
  const auto with_main = [](kzero::DType dtype) {
    return std::vector<kzero::detail::ArrayLayout>{{"value", dtype},
                                                   {"main", float32},
                                                   {"exp_avg", float32},
                                                   {"exp_avg_sq", float32}};
  };
  kzero::detail::FileLayout layout;
  layout.content = {41,
                    3,
                    "0.1.0",
                    "2026-01-02T03:04:05Z",
                    {{"epoch", std::int64_t{5}},
                     {"loss", 0.25},
                     {"note", std::string("größer")},
                     {"files", std::vector<std::string>{"a", "b"}},
                     {"curve", kzero::UserArray<double>{{2, 1}, {0.5, 1.5}}}}};
  layout.groups = {
      {"default",
       "adamw",
       {{"learning_rate", 1e-3}, {"beta1", 0.9}, {"amsgrad", 0.0}}},
      {"no/decay", "sgd", {{"learning_rate", 0.1}}}};
  layout.scaler = {
      "dynamic", {4096.0, 17, 2}, kzero::DynamicScaler::megatron()};
  layout.parameters = {
      {"z/first", "default", 41, {256, 256}, with_main(bfloat16)},
      {"half", "default", 41, {65536}, with_main(float16)},
      {"empty", "no/decay", 40, {0, 3}, {{"value", float32}}},
      {"a scalar", "no/decay", 40, {}, {{"value", float64}}},
      {"größe λ", "no/decay", 40, {2, 3, 5}, {{"value", float32}}},
      {std::string(300, 'n'), "default", 2, {7}, with_main(bfloat16)},
  };
  return layout;
}

/// 16-bit arrays hold all their codes in turn, others small numbers.
inline Contents sample_contents(const kzero::detail::FileLayout& layout) {
  Contents contents;
  for_each_array(layout, [&](const auto&, const auto& array,
                             const std::string& key, std::int64_t size) {
    kzero::visit_dtype(array.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      std::vector<T> values(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < values.size(); ++i) {
        if constexpr (sizeof(T) == 2)
          values[i].bits = static_cast<std::uint16_t>(i);
        else
          values[i] = static_cast<T>(i) / 8;
      }
      Bytes& bytes = contents[key];
      bytes.resize(values.size() * sizeof(T));
      if (!bytes.empty())
        std::memcpy(bytes.data(), values.data(), bytes.size());
    });
  });
  return contents;
}

inline void write_sample(
    const std::filesystem::path& path,
    const kzero::detail::FileLayout& layout = sample_layout()) {
  const Contents contents = sample_contents(layout);
  kzero::detail::CheckpointWriter writer(path, layout);
  for_each_array(layout, [&](const auto& parameter, const auto& array,
                             const std::string& key, std::int64_t) {
    writer.write(parameter, array, contents.at(key).data());
  });
  writer.finish();
  writer.take_name();
}

/// All elements that the file has of these arrays.
inline Contents read_contents(const kzero::detail::CheckpointReader& reader,
                              const kzero::detail::FileLayout& layout) {
  Contents contents;
  for_each_array(layout, [&](const auto& parameter, const auto& array,
                             const std::string& key, std::int64_t size) {
    Bytes& bytes = contents[key];
    bytes.resize(static_cast<std::size_t>(size * size_of(array.dtype)));
    reader.read(parameter, array, bytes.data());
  });
  return contents;
}

}  // namespace kzero::test
