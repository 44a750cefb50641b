// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the engine asks of the communicator.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <kzero/checkpoint.hpp>
#include <memory>
#include <set>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"
#include "support/counting_communicator.hpp"

namespace {
std::size_t refused_size = 0;  // bytes
}

/// Takes the place of the C library's, so that memory can be refused.
extern "C" int posix_memalign(void** memory, std::size_t alignment,
                              std::size_t size) noexcept {
  if (refused_size != 0 && size == refused_size) return ENOMEM;
  const std::size_t whole = (size + alignment) / alignment * alignment;
  *memory = std::aligned_alloc(alignment, whole);
  return *memory != nullptr ? 0 : ENOMEM;
}

namespace kzero::test {
namespace {

/// Looks at what is gathered and scattered, and can break off.
class WatchedCommunicator : public CountingCommunicator {
 public:
  using CountingCommunicator::CountingCommunicator;

  void gather(const void* send, void* receive, const ShardTable& shards,
              std::int64_t element_bytes, int root, Subject subject) override {
    watch(receive, shards, element_bytes);
    CountingCommunicator::gather(send, receive, shards, element_bytes, root,
                                 subject);
  }
  void scatter(const void* send, void* receive, const ShardTable& shards,
               std::int64_t element_bytes, int root, Subject subject) override {
    watch(send, shards, element_bytes);
    CountingCommunicator::scatter(send, receive, shards, element_bytes, root,
                                  subject);
  }

  std::set<const void*> buffers;  // that rank 0 gave
  std::int64_t largest = 0;       // bytes
  int transfers = 0;
  int last = -1;  // the transfer that breaks off

 private:
  void watch(const void* buffer, const ShardTable& shards,
             std::int64_t element_bytes) {
    if (transfers++ == last) throw CommunicationError("a peer is gone");
    buffers.insert(buffer);
    largest = std::max(largest, shards.total() * element_bytes);
  }
};

class GatherEngine : public testing::Test {
 protected:
  GatherEngine() {
    write_start(optimizer, 1);
    train(optimizer, 2);
    watched->buffers.clear();
  }

  std::int64_t largest_array() {
    std::int64_t bytes = 0;
    const auto& plan = optimizer.plan();
    for (const Bucket& bucket : plan.buckets()) {
      const auto& buffer =
          plan.buffers()[static_cast<std::size_t>(bucket.buffer)];
      bytes = std::max(bytes,
                       bucket.range.size() * size_of(main_dtype(buffer.dtype)));
    }
    return bytes;
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  std::shared_ptr<WatchedCommunicator> watched =
      std::make_shared<WatchedCommunicator>(world());
  ShardedOptimizer optimizer = make_varied(watched, 600);
};

// Case 21.
TEST_F(GatherEngine, TakesOneBufferOfOneBucket) {
  ASSERT_GT(optimizer.plan().buckets().size(), 4u);
  save_checkpoint(optimizer, folder / "c.h5", {.engine = Engine::gather});
  EXPECT_EQ(watched->buffers.size(), 1u);
  EXPECT_EQ(watched->largest, largest_array());
  EXPECT_EQ(*watched->buffers.begin() == nullptr, watched->rank() != 0);

  watched->buffers.clear();
  load_checkpoint(optimizer, folder / "c.h5", {.engine = Engine::gather});
  EXPECT_EQ(watched->buffers.size(), 1u);
  EXPECT_EQ(watched->largest, largest_array());
}

TEST_F(GatherEngine, MovesOnlyBucketsWithSomethingToLoad) {
  ParameterSet model;
  ParameterOptions plain;
  plain.group = "plain";
  model.add("five", {5}, plain);
  ShardedOptimizer saving(world(), model, varied_options(600));
  save_checkpoint(saving, folder / "c.h5", {.engine = Engine::gather});
  watched->transfers = 0;
  load_checkpoint(optimizer, folder / "c.h5",
                  {.match = Match::partial, .engine = Engine::gather});
  const ParameterId five = optimizer.parameters().find("five").value();
  const std::int64_t bucket = optimizer.plan().placement(five).bucket;
  const auto arrays =
      detail::OptimizerAccess::shard_arrays(optimizer, bucket).size();
  EXPECT_GT(arrays, 0u);  // of others in the bucket
  EXPECT_EQ(watched->transfers, static_cast<int>(arrays));
  EXPECT_EQ(watched->buffers.size(), 1u);
}

// The others would wait for it in the first transfer.
TEST_F(GatherEngine, EndsOnEveryRankWhereOneHasNoMemory) {
  save_checkpoint(optimizer, folder / "c.h5", {.engine = Engine::gather});
  const int rank = watched->rank();
  std::int64_t largest = 0;
  for (std::int64_t b = 0; b < optimizer.plan().trained_buckets(); ++b)
    for (const auto& array :
         detail::OptimizerAccess::shard_arrays(optimizer, b))
      largest = std::max(largest, optimizer.plan().shards(b).size(rank) *
                                      size_of(array.dtype));
  const Snapshot before = snapshot(optimizer, MPI_COMM_WORLD);
  watched->transfers = 0;
  if (rank == watched->size() - 1)
    refused_size = static_cast<std::size_t>(largest);
  const std::string message = checkpoint_error([&] {
    load_checkpoint(optimizer, folder / "c.h5", {.engine = Engine::gather});
  });
  refused_size = 0;
  EXPECT_TRUE(says(message, {"no memory"}));
  EXPECT_EQ(watched->transfers, 0);
  EXPECT_TRUE(equal(snapshot(optimizer, MPI_COMM_WORLD), before));
  load_checkpoint(optimizer, folder / "c.h5", {.engine = Engine::gather});
}

TEST_F(GatherEngine, EndsAfterTheBucketInWhichRankZeroFailed) {
  const std::filesystem::path path = folder / "none" / "c.h5";
  EXPECT_THROW(save_checkpoint(optimizer, path, {.engine = Engine::gather}),
               CheckpointError);
  EXPECT_EQ(watched->transfers, 0);
}

TEST_F(GatherEngine, LeavesNoFileWhenAPeerIsGone) {
  save_checkpoint(optimizer, folder / "c.h5", {.engine = Engine::gather});
  const std::string old = file_bytes(folder / "c.h5");
  const int transfers = watched->transfers;
  for (int last = 0; last < transfers; ++last) {
    watched->transfers = 0;
    watched->last = last;
    EXPECT_THROW(
        save_checkpoint(optimizer, folder / "c.h5", {.engine = Engine::gather}),
        CommunicationError);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
  EXPECT_EQ(file_bytes(folder / "c.h5"), old);
}

}  // namespace
}  // namespace kzero::test
