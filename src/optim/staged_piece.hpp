// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Gathers parameters that lie in the caller's own memory: a piece of every
// rank's shard goes through staging memory, and from there to the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <vector>

#include "core/pieces.hpp"
#include "optim/bucket_work.hpp"
#include "optim/hands.hpp"
#include "storage/external_bucket.hpp"

namespace kzero::detail {

/// What is under way in one piece of staging memory.
class StagedPiece {
 public:
  /// memory: room for the largest piece.
  StagedPiece(std::byte* memory, int ranks);

  /// Takes this rank's part from its main parameters and sends it. pieces: of
  /// the bucket; piece: which of them.
  Ticket start(Communicator& communicator, const ExternalBucket& bucket,
               const BucketWork& work, const Pieces& pieces, std::int64_t piece,
               const Hands& hands);

  /// Writes what has come to the caller's memory.
  void finish(const ExternalBucket& bucket, const Hands& hands) const;

 private:
  std::byte* memory_ = nullptr;
  std::vector<std::int64_t> offsets_;  // of the ranks' parts, in elements
  std::vector<Range> ranges_;          // of them, in the bucket
  std::int64_t element_bytes_ = 0;
};

}  // namespace kzero::detail
