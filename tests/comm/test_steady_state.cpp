// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A second step allocates nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "comm/backends.hpp"

namespace {

std::int64_t allocations = 0;

}  // namespace

// Out of line, or g++ takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace kzero::test {
namespace {

class SteadyState : public OverBackends {
 protected:
  static constexpr std::int64_t shard = 1000;

  void step() {
    // As an optimizer does: all reductions first, then bucket by bucket.
    ReductionTicket reductions[3];
    Ticket gathers[3];
    for (int bucket = 0; bucket < 3; ++bucket) {
      reductions[bucket] = communicator->start_reduce(reduce_arguments(bucket));
    }
    for (int bucket = 0; bucket < 3; ++bucket) {
      while (const Contributions* piece = reductions[bucket]->next()) {
        seen += piece->range.size();
      }
      reductions[bucket]->wait();
      reductions[bucket].reset();
      gathers[bucket] =
          communicator->start_all_gather(gather_arguments(bucket));
    }
    communicator->all_reduce_sum(std::span(norms), {"norm"});
    communicator->all_reduce(std::span(flags), Extremum::maximum, {"found"});
    communicator->broadcast(norms, sizeof(norms), 0, {"norm"});
    communicator->gather(norms, all.data(), ShardTable::uniform(size, 1), 8, 0,
                         {"state"});
    communicator->scatter(all.data(), norms, ShardTable::uniform(size, 1), 8, 0,
                          {"state"});
    for (Ticket& gather : gathers) {
      gather->wait();
      gather.reset();
    }
    communicator->barrier({"end"});
  }

  ReduceArguments reduce_arguments(int bucket) {
    ReduceArguments arguments;
    arguments.bucket = data + bucket * shard * size;
    arguments.sum = add_exactly;
    arguments.shards = ShardTable::uniform(size, shard);
    arguments.piece_bytes = 2000;
    arguments.piece_granularity = 8;
    arguments.index = bucket;
    return arguments;
  }

  GatherArguments gather_arguments(int bucket) {
    GatherArguments arguments;
    arguments.bucket = data + bucket * shard * size;
    arguments.shards = ShardTable::uniform(size, shard);
    arguments.index = bucket;
    return arguments;
  }

  void expect_steady() {
    step();
    const std::int64_t staging = communicator->staging_bytes();
    const std::int64_t before = allocations;
    step();
    step();
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(communicator->staging_bytes(), staging);
    EXPECT_EQ(seen, 3 * 3 * shard);
  }

  std::size_t elements() const {
    return static_cast<std::size_t>(3 * shard * size);
  }

  // The simulation brings copies of its own.
  static constexpr const char* meeting_memory =
      "which operations of the ranks meet is a matter of time, and memory that "
      "meets for the first time is mapped";
  bool is_a_matter_of_time() const {
    return GetParam().link && GetParam().options.backend == Backend::node;
  }

  float* data = nullptr;
  std::vector<double> all = std::vector<double>(static_cast<std::size_t>(size));
  double norms[2] = {1, 2};
  std::int64_t flags[2] = {1, 2};
  std::int64_t seen = 0;
};

TEST_P(SteadyState, AllocatesNothing) {
  if (is_a_matter_of_time()) GTEST_SKIP() << meeting_memory;
  const std::shared_ptr<void> memory = communicator->allocate(
      static_cast<std::int64_t>(elements() * sizeof(float)));
  data = static_cast<float*>(memory.get());
  std::fill_n(data, elements(), 0.0f);
  expect_steady();
}

TEST_P(SteadyState, AllocatesNothingForMemoryOfTheCaller) {
  if (is_a_matter_of_time()) GTEST_SKIP() << meeting_memory;
  std::vector<float> memory(elements());
  data = memory.data();
  expect_steady();
}

OVER_ALL_BACKENDS(SteadyState);

}  // namespace
}  // namespace kzero::test
