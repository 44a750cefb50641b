// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case 22: shards, arrays and places in the file past 2 GiB. Takes 6 GiB of
// memory and 4 GiB of disk; on request (scripts/test --full).
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <kzero/checkpoint.hpp>
#include <string>

#include "io/checkpoint_file.hpp"
#include "io/scratch_folder.hpp"
#include "optim/optimizer_access.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

using detail::OptimizerAccess;

constexpr std::int64_t two_gib = std::int64_t{1} << 31;
/// Elements of 4 bytes in 2.3 GiB, and some.
constexpr std::int64_t count = 23 * (std::int64_t{1} << 28) / 10 + 7;

/// 16 bits that look random.
std::uint32_t scrambled(std::int64_t i, std::uint32_t seed) {
  const auto x = static_cast<std::uint32_t>(i) * 2654435761u + seed;
  return (x ^ x >> 15) * 2246822519u >> 16;
}

/// Normal numbers of either sign.
float main_at(std::int64_t i) {
  const std::uint32_t bits =
      (scrambled(i, 1) << 16 | scrambled(i, 2)) & 0xbfffffffu;
  float number = 0.0f;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

std::uint16_t half_at(std::int64_t i) {
  return static_cast<std::uint16_t>(scrambled(i, 3) & 0xbfffu);
}

class HugeCheckpoint : public testing::Test {
 protected:
  /// Parameters before and behind the large one, which one rank has as its
  /// shard.
  static ShardedOptimizer make(DType dtype) {
    ParameterSet model;
    model.add("first", {5003}, typed(DType::float32));
    model.add("large", {count}, typed(dtype));
    model.add("last", {3001}, typed(dtype));
    OptimizerOptions options;
    options.rule = Sgd{};
    return {world(), model, options};
  }

  template <class T>
  static T* values(ShardedOptimizer& optimizer, ParameterId id) {
    return reinterpret_cast<T*>(
        OptimizerAccess::contiguous_value(optimizer, id));
  }

  static float* main_of(ShardedOptimizer& optimizer, ParameterId id) {
    const Segment segment = optimizer.segments(id)[0];
    EXPECT_EQ(segment.in_shard.size(), optimizer.parameters()[id].size);
    return static_cast<float*>(
               OptimizerAccess::main_shard(optimizer, segment.bucket)) +
           segment.in_shard.begin;
  }

  /// Where an array begins in the file.
  std::int64_t place_of(const std::string& parameter,
                        const std::string& array) const {
    const detail::CheckpointReader reader(path);
    const auto& all = reader.layout().parameters;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = 0; k < all[i].arrays.size(); ++k)
        if (all[i].name == parameter && all[i].arrays[k].name == array)
          return reader.stored().arrays[i][k].place;
    return -1;
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
};

constexpr ParameterId first{0};
constexpr ParameterId large{1};
constexpr ParameterId last{2};

/// How many elements are not f(i).
template <class T, class F>
std::int64_t wrong(const T* found, std::int64_t size, F&& f) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += found[i] == f(i) ? 0 : 1;
  return sum;
}

template <class T, class F>
void fill(T* to, std::int64_t size, F&& f) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = f(i);
}

TEST_F(HugeCheckpoint, OfOneArrayComesBack) {
  for (const Engine engine : {Engine::direct, Engine::gather}) {
    {
      auto saving = make(DType::float32);
      fill(values<float>(saving, first), 5003, [](auto i) { return float(i); });
      fill(values<float>(saving, large), count, main_at);
      fill(values<float>(saving, last), 3001, [](auto i) { return -float(i); });
      save_checkpoint(saving, path, {.engine = engine, .durable = false});
    }
    EXPECT_GT(place_of("first", "value"), two_gib);
    auto optimizer = make(DType::float32);
    load_checkpoint(optimizer, path, {.engine = engine});
    EXPECT_EQ(wrong(values<float>(optimizer, first), 5003,
                    [](auto i) { return float(i); }),
              0);
    EXPECT_EQ(wrong(values<float>(optimizer, large), count, main_at), 0);
    EXPECT_EQ(wrong(values<float>(optimizer, last), 3001,
                    [](auto i) { return -float(i); }),
              0);
  }
}

TEST_F(HugeCheckpoint, OfAShardComesBack) {
  {
    auto saving = make(DType::bfloat16);
    fill(&values<bfloat16>(saving, large)->bits, count, half_at);
    fill(main_of(saving, large), count, main_at);
    fill(main_of(saving, last), 3001, main_at);
    save_checkpoint(saving, path, {.durable = false});
  }
  EXPECT_GT(std::filesystem::file_size(path), std::uintmax_t{count} * 6);
  {
    auto optimizer = make(DType::bfloat16);
    load_checkpoint(optimizer, path);
    EXPECT_EQ(wrong(&values<bfloat16>(optimizer, large)->bits, count, half_at),
              0);
    EXPECT_EQ(wrong(main_of(optimizer, large), count, main_at), 0);
    EXPECT_EQ(wrong(main_of(optimizer, last), 3001, main_at), 0);
  }
  // Converted as it is read.
  auto wide = make(DType::float32);
  load_checkpoint(wide, path, {.other_type = OtherType::convert});
  EXPECT_EQ(wrong(values<float>(wide, large), count, main_at), 0);
}

}  // namespace
}  // namespace kzero::test
