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
#include <vector>

#include "comm/backends.hpp"

namespace kzero::test {

struct Cut {
  std::int64_t piece_bytes;
  std::int64_t granularity;
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
        bucket_(make_bucket(dtype, shards.total(), rank_, salt_)) {
    ReduceArguments arguments;
    arguments.bucket = bucket_.data();
    arguments.dtype = dtype;
    arguments.shards = shards;
    arguments.piece_bytes = cut.piece_bytes;
    arguments.piece_granularity = cut.granularity;
    arguments.index = index;
    ticket = communicator.start_reduce(arguments);
  }

  /// Takes all pieces and checks them.
  void take_all() {
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
    // The bucket may be written again: nobody may see this.
    std::fill(bucket_.begin(), bucket_.end(), std::byte{0xff});
  }

  ReductionTicket ticket;

 private:
  void check(const Contributions& piece) const {
    const std::int64_t first = shards_.range(rank_).begin + piece.range.begin;
    int next_rank = 0;
    for (const Contribution& part : piece.parts) {
      ASSERT_EQ(part.first_rank, next_rank);
      ASSERT_GE(part.rank_count, 1);
      next_rank += part.rank_count;
      for (std::int64_t i = 0; i < piece.range.size(); ++i) {
        double expected = 0;
        for (int r = part.first_rank; r < next_rank; ++r) {
          expected += element(r, first + i, salt_);
        }
        ASSERT_EQ(value_at(part.data, piece.dtype, i), expected)
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
  std::vector<std::byte> bucket_;
};

/// A bucket in which only this rank's shard is filled in.
class CheckedGather {
 public:
  CheckedGather(Communicator& communicator, DType dtype, ShardTable shards,
                int index)
      : dtype_(dtype), shards_(shards), salt_(index) {
    const std::vector<std::byte> whole =
        make_bucket(dtype, shards.total(), 0, salt_);
    bucket_.assign(whole.size(), std::byte{0xee});
    const Range own = shards.range(communicator.rank());
    const std::int64_t bytes = size_of(dtype);
    if (!own.empty()) {
      std::memcpy(bucket_.data() + own.begin * bytes,
                  whole.data() + own.begin * bytes,
                  static_cast<std::size_t>(own.size() * bytes));
    }
    GatherArguments arguments;
    arguments.bucket = bucket_.data();
    arguments.dtype = dtype;
    arguments.shards = shards;
    arguments.index = index;
    ticket = communicator.start_all_gather(arguments);
  }

  void check() const {
    EXPECT_EQ(bucket_, make_bucket(dtype_, shards_.total(), 0, salt_));
  }

  Ticket ticket;

 private:
  DType dtype_;
  ShardTable shards_;
  int salt_;
  std::vector<std::byte> bucket_;
};

}  // namespace kzero::test
