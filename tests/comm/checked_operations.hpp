// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A reduction and a gather that bring their bucket and check what arrives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

#include "comm/backends.hpp"

namespace kzero::test {

/// Memory of the communicator with this content.
inline std::shared_ptr<void> allocate_copy(
    Communicator& communicator, const std::vector<std::byte>& content) {
  std::shared_ptr<void> memory =
      communicator.allocate(static_cast<std::int64_t>(content.size()));
  std::copy(content.begin(), content.end(),
            static_cast<std::byte*>(memory.get()));
  return memory;
}

struct Cut {
  std::int64_t piece_bytes;
  std::int64_t granularity;
  OrderedSum sum = add_exactly;
};

/// A bucket of this rank and its reduction.
class CheckedReduction {
 public:
  CheckedReduction(Communicator& communicator, DType dtype, ShardTable shards,
                   Cut cut, int index)
      : rank_(communicator.rank()),
        size_(communicator.size()),
        cut_(cut),
        salt_(index),
        shards_(shards),
        bytes_(shards.total() * size_of(dtype)),
        bucket(allocate_copy(
            communicator, make_bucket(dtype, shards.total(), rank_, salt_))) {
    ReduceArguments arguments;
    arguments.bucket = bucket.get();
    arguments.dtype = dtype;
    arguments.shards = shards;
    arguments.piece_bytes = cut.piece_bytes;
    arguments.piece_granularity = cut.granularity;
    arguments.sum = cut.sum;
    arguments.index = index;
    ticket = communicator.start_reduce(arguments);
  }

  /// Takes all pieces and checks them, and waits for the end.
  void take_all() {
    ASSERT_NO_FATAL_FAILURE(take_pieces());
    end();
  }

  /// The other ranks have to take theirs before it returns.
  void end() {
    ticket->wait();
    // The bucket may be written again: nobody may see this.
    std::memset(bucket.get(), 0xff, static_cast<std::size_t>(bytes_));
  }

  void take_pieces() {
    const std::int64_t shard = shards_.size(rank_);
    std::int64_t done = 0;
    while (const Contributions* piece = ticket->next()) {
      ASSERT_EQ(piece->range.begin, done);
      ASSERT_GT(piece->range.end, done);
      ASSERT_LE(piece->range.end, shard);
      if (piece->range.end < shard) {
        EXPECT_EQ(piece->range.end % cut_.granularity, 0);
      }
      check(*piece);
      done = piece->range.end;
    }
    EXPECT_EQ(done, shard);
    EXPECT_EQ(ticket->next(), nullptr);
    EXPECT_TRUE(ticket->test());
  }

 private:
  void check(const Contributions& piece) const {
    const std::int64_t first = shards_.range(rank_).begin + piece.range.begin;
    int next_rank = 0;
    for (const Contribution& part : piece.parts) {
      ASSERT_EQ(part.first_rank, next_rank);
      ASSERT_GE(part.rank_count, 1);
      if (cut_.sum == nullptr) {
        ASSERT_EQ(part.rank_count, 1);
      }
      next_rank += part.rank_count;
      for (std::int64_t i = 0; i < piece.range.size(); ++i) {
        double expected = 0;
        for (int r = part.first_rank; r < next_rank; ++r) {
          expected += element(r, first + i, salt_);
        }
        ASSERT_EQ(value_at(part.data, piece.dtype_of(part), i), expected)
            << "element " << i << " of " << piece.range.size() << " at "
            << piece.range.begin << ", part of rank " << part.first_rank;
      }
    }
    EXPECT_EQ(next_rank, size_);
  }

  int rank_;
  int size_;
  Cut cut_;
  int salt_;
  ShardTable shards_;
  std::int64_t bytes_;

 public:
  std::shared_ptr<void> bucket;
  ReductionTicket ticket;  // dropped before the bucket
};

/// A bucket in which only this rank's shard is filled in.
class CheckedGather {
 public:
  CheckedGather(Communicator& communicator, DType dtype, ShardTable shards,
                int index)
      : dtype_(dtype), shards_(shards), salt_(index) {
    std::vector<std::byte> content =
        make_bucket(dtype, shards.total(), 0, salt_);
    const Range own = shards.range(communicator.rank());
    for (std::int64_t i = 0; i < shards.total() * size_of(dtype); ++i) {
      const std::int64_t index_of_element = i / size_of(dtype);
      if (index_of_element < own.begin || index_of_element >= own.end) {
        content[static_cast<std::size_t>(i)] = std::byte{0xee};
      }
    }
    bucket = allocate_copy(communicator, content);
    GatherArguments arguments;
    arguments.bucket = bucket.get();
    arguments.dtype = dtype;
    arguments.shards = shards;
    arguments.index = index;
    ticket = communicator.start_all_gather(arguments);
  }

  void check() const {
    const std::vector<std::byte> expected =
        make_bucket(dtype_, shards_.total(), 0, salt_);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           static_cast<const std::byte*>(bucket.get())));
  }

 private:
  DType dtype_;
  ShardTable shards_;
  int salt_;

 public:
  std::shared_ptr<void> bucket;
  Ticket ticket;  // dropped before the bucket
};

}  // namespace kzero::test
