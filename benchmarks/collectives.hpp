// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A reduce-scatter of float32 and an all-gather, by the library, by MPI alone,
// and as a loop that moves the same bytes.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <memory>
#include <vector>

#include "huge_vector.hpp"

namespace kzero::bench {

class ReduceScatter {
 public:
  /// Collective; bytes of the whole bucket, which is padded to equal shards.
  /// Makes sure that the library and MPI agree.
  ReduceScatter(std::shared_ptr<Communicator> communicator, std::int64_t bytes);

  /// Ends with the sum of all ranks in this one's shard, as a step does.
  void with_library();
  void with_mpi();
  /// This rank's part of it: the contributions to its shard read, its shard
  /// written.
  void with_loop();

 private:
  void check();

  std::shared_ptr<Communicator> communicator_;
  std::int64_t shard_elements_ = 0;
  std::shared_ptr<void> bucket_;  // the communicator's
  HugeVector<float> own_bucket_;  // for MPI
  HugeVector<float> shard_;
  std::vector<const void*> sources_;  // of the loop
};

class AllGather {
 public:
  AllGather(std::shared_ptr<Communicator> communicator, std::int64_t bytes);

  void with_library();
  void with_mpi();

 private:
  void check();

  std::shared_ptr<Communicator> communicator_;
  std::int64_t shard_elements_ = 0;  // of bfloat16
  std::shared_ptr<void> bucket_;
  HugeVector<std::uint16_t> own_bucket_;
};

}  // namespace kzero::bench
