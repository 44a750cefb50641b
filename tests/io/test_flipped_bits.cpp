// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case 25 at 500 random places anywhere in a file: one flipped bit, and the
// file is refused on every rank, or loaded with exactly the bits that were
// saved.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <kzero/checkpoint.hpp>
#include <map>
#include <random>
#include <string>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

constexpr unsigned seed = 20260731;
constexpr int flips = 500;

UserData some_user_data() {
  return {{"epoch", std::int64_t{12}},
          {"curve", UserArray<double>{{3}, {0.5, 1.5, -2.0}}}};
}

/// Of a place in the file: "header", "manifest", "array" or "metadata".
class Regions {
 public:
  explicit Regions(const std::filesystem::path& path) {
    const detail::CheckpointReader reader(path);
    const detail::FileHeader header = detail::read_header(reader.header());
    regions_[0] = "header";
    for (const auto& each : metadata_stretches(reader.stored(), header))
      regions_[each.place] = "metadata";
    for (const auto& each : array_stretches(reader.stored()))
      regions_[each.place] = "array";
    regions_[header.manifest_place] = "manifest";
  }

  std::string at(std::int64_t place) const {
    return std::prev(regions_.upper_bound(place))->second;
  }

 private:
  std::map<std::int64_t, std::string> regions_;  // by first byte
};

class FlippedBits : public testing::TestWithParam<Engine> {
 protected:
  FlippedBits() {
    write_start(optimizer, 1);
    train(optimizer, 2);
    save_checkpoint(optimizer, path, {some_user_data()});
    saved = taken();
    write_start(optimizer, 2);
    train(optimizer, 1);
    now = taken();
  }

  Snapshot taken() { return snapshot(optimizer, MPI_COMM_WORLD); }

  /// Of one byte, in place. Of rank 0, which the others wait for in the load.
  void flip(std::int64_t place, int bit) {
    if (optimizer.communicator()->rank() != 0) return;
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(place);
    const int byte = file.get();
    file.seekp(place);
    file.put(static_cast<char>(byte ^ (1 << bit)));
  }

  /// Loads it. Returns whether it was refused.
  bool load(const std::string& region) {
    CheckpointContent content;
    const std::string message = checkpoint_error([&] {
      content = load_checkpoint(optimizer, path, {.engine = GetParam()});
    });
    expect_common(message);
    const Snapshot before = std::move(now);
    now = taken();
    if (message == no_error) {
      EXPECT_TRUE(equal(now, saved));
      EXPECT_EQ(content.step, 2);
      EXPECT_EQ(content.user, some_user_data());
      return false;
    }
    EXPECT_TRUE(says(message, {"c.h5"}));
    const bool is_begun = message.find("partly overwritten") != message.npos;
    if (is_begun) {
      EXPECT_EQ(region, "array");
      EXPECT_TRUE(says(message, {"the array", "is damaged"}));
    } else {
      EXPECT_TRUE(equal(now, before));
    }
    return true;
  }

  static void expect_common(const std::string& message) {
    std::string roots = message;
    roots.resize(1000);
    MPI_Bcast(roots.data(), 1000, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT_EQ(message.substr(0, 1000), roots.substr(0, message.size()));
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  const std::filesystem::path path = folder / "c.h5";
  ShardedOptimizer optimizer = make_varied(world(), 600);
  Snapshot saved;
  Snapshot now;  // what the optimizer holds
};

TEST_P(FlippedBits, AreRefused) {
  const Regions regions(path);
  MPI_Barrier(MPI_COMM_WORLD);  // every rank has read it
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  if (optimizer.communicator()->rank() == 0)
    std::printf("seed %u, %d of %lld bytes\n", seed, flips,
                static_cast<long long>(size));
  std::mt19937 random(seed);
  std::map<std::string, int> met;
  for (int i = 0; i < flips; ++i) {
    const auto place = static_cast<std::int64_t>(random()) % size;
    const auto bit = static_cast<int>(random() % 8);
    const std::string region = regions.at(place);
    SCOPED_TRACE(detail::concat("seed ", seed, ", bit ", bit, " of byte ",
                                place, " in the ", region));
    flip(place, bit);
    EXPECT_TRUE(load(region));  // there is a checksum over every byte
    flip(place, bit);
    ++met[region];
  }
  for (const char* region : {"header", "manifest", "metadata", "array"})
    EXPECT_GE(met[region], 10) << region;
  EXPECT_FALSE(load("none"));
  train(optimizer, 1);
}

INSTANTIATE_TEST_SUITE_P(Engines, FlippedBits,
                         testing::Values(Engine::direct, Engine::gather),
                         [](const auto& engine) {
                           return engine.param == Engine::direct ? "direct"
                                                                 : "gather";
                         });

}  // namespace
}  // namespace kzero::test
