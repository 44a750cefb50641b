// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A checkpoint does not depend on the number of ranks, nor on the partition.
#include <gtest/gtest.h>

#include <algorithm>
#include <kzero/checkpoint.hpp>
#include <string>

#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "io/sub_communicator.hpp"

namespace kzero::test {
namespace {

UserData some_user_data() {
  return {{"epoch", std::int64_t{12}},
          {"note", std::string("größer\0!", 9)},
          {"files", std::vector<std::string>{"a", ""}},
          {"image", UserArray<float>{{2, 1}, {0.5f, -1.f}}}};
}

class Reshard : public testing::TestWithParam<int> {};

// Case 20. Saved on 4 ranks, loaded on any number of them with buckets of
// another size and partition: the same bits, and the same after more steps.
TEST_P(Reshard, ContinuesOnAnyNumberOfRanks) {
  const ScratchFolder folder(MPI_COMM_WORLD);
  Snapshot saved;
  Snapshot later;
  const int saving = std::min(4, world_size());
  {
    const SubCommunicator few(saving);
    if (few.member()) {
      auto optimizer = make_varied(few.make(), 600, some_partition(GetParam()));
      write_start(optimizer, 1);
      train(optimizer, 5);
      optimizer.group("plain").set("learning_rate", 0.125);
      save_checkpoint(optimizer, folder / "c.h5", {some_user_data()});
      saved = snapshot(optimizer, few.get());
      train(optimizer, 3);
      later = snapshot(optimizer, few.get());
    }
  }
  broadcast(saved, MPI_COMM_WORLD);
  broadcast(later, MPI_COMM_WORLD);
  ASSERT_FALSE(equal(saved, later));

  int load = 0;
  for (const int ranks : {1, 2, 3, 5, 7}) {
    load += 2;
    if (ranks > world_size()) continue;
    const SubCommunicator some(ranks);
    if (!some.member()) continue;
    for (const std::int64_t bucket_bytes : {100 * ranks, 1 << 20}) {
      // Of the four saves each meets every partition on some number of ranks.
      const Partitioning partition =
          some_partition(GetParam() + load + (bucket_bytes == 1 << 20));
      SCOPED_TRACE(name_of(partition));
      auto optimizer = make_varied(some.make(), bucket_bytes, partition);
      write_start(optimizer, 2);
      train(optimizer, 1);
      optimizer.group("momentum").set("momentum", 0.5);
      const CheckpointContent content =
          load_checkpoint(optimizer, folder / "c.h5");
      EXPECT_TRUE(equal(snapshot(optimizer, some.get()), saved)) << ranks;
      EXPECT_TRUE(padding_is_zero(optimizer));
      EXPECT_EQ(content.step, 5);
      EXPECT_EQ(content.world_size, saving);
      EXPECT_EQ(content.library_version, version());
      EXPECT_EQ(content.created.size(), 20u) << content.created;
      EXPECT_EQ(content.user, some_user_data());
      train(optimizer, 3);
      EXPECT_TRUE(equal(snapshot(optimizer, some.get()), later)) << ranks;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Partitions, Reshard, testing::Range(0, 4),
                         [](const auto& partition) {
                           const std::string name =
                               name_of(some_partition(partition.param));
                           return name.substr(0, name.find(',')) +
                                  (name.find(',') < name.size() ? "_divided"
                                                                : "");
                         });

}  // namespace
}  // namespace kzero::test
