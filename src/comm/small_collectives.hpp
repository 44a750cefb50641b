// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The collectives that end before they return: small data, and whole buffers
// between one rank and all.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <span>

#include "comm/aligned_memory.hpp"
#include "comm/mpi_messages.hpp"

namespace kzero::detail {

class SmallCollectives {
 public:
  explicit SmallCollectives(MpiLink& link);

  /// In log2(ranks) rounds (Bruck, Ho, Kipnis, Upfal and Weathersby, 1997).
  void all_gather(const void* send, std::int64_t bytes, void* receive,
                  const Subject& subject);

  /// Down a binomial tree; large data in pieces that follow one another. Called
  /// by every rank; data goes to some: ascending, with root among them.
  void broadcast(void* data, std::int64_t bytes, int root,
                 const Subject& subject, std::span<const int> ranks);

  /// In log2(ranks) rounds (Hensgen, Finkel and Manber, 1988).
  void barrier(const Subject& subject);

  /// Straight between root and every rank, a bounded number at a time.
  void gather(const void* send, void* receive, const ShardTable& shards,
              std::int64_t element_bytes, int root, const Subject& subject);
  void scatter(const void* send, void* receive, const ShardTable& shards,
               std::int64_t element_bytes, int root, const Subject& subject);

 private:
  MpiLink& link_;
  MessageSet messages_;
  MessageSet other_messages_;
  WorkSpace work_space_;
};

}  // namespace kzero::detail
