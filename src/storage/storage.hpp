// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The memory of an optimizer on this rank: flat parameter and gradient buffers,
// allocated by communicators, and the shards of the state in Kokkos views.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/memory.hpp>
#include <kzero/parameter_set.hpp>
#include <kzero/parameter_view.hpp>
#include <kzero/plan.hpp>
#include <memory>
#include <span>
#include <vector>

namespace kzero::detail {

/// Whose memory is whose: parameters are of the one that gathers them,
/// gradients of the one that reduces them. May be the same.
struct StorageCommunicators {
  Communicator& gather;
  Communicator& reduce;
  /// Whether the ranks of a node have parameters in common. Construction is
  /// collective then.
  bool share_parameters = false;
};

class Storage {
 public:
  /// Everything starts as zeros, first touched by the threads of space; what
  /// ranks have in common by those of the first rank, which the others have to
  /// wait for.
  /// Parameters and communicators outlive the storage. Buffers below
  /// first_buffer get no memory: they are another storage's, which takes the
  /// others. state_arrays: for each
  /// buffer.
  Storage(const Plan& plan, const ParameterSet& parameters,
          StorageCommunicators communicators,
          std::span<const std::size_t> state_arrays,
          const ExecutionSpace& space, std::size_t first_buffer = 0);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Takes the buffers of a storage that begins behind the ones here, and its
  /// plan. What is here stays where it is.
  void take(Storage& more) noexcept;

  /// First element of a bucket. The parameters of one that is external lie in
  /// the caller's memory: null.
  std::byte* parameter_bucket(std::int64_t bucket) const;
  std::byte* gradient_bucket(std::int64_t bucket) const;

  /// First element of this rank's shard of a bucket, of main_dtype. The
  /// averaged gradient lies in the gradient bucket, and the main parameters in
  /// the parameter bucket, where the types are the same and the bucket is not
  /// external.
  std::byte* averaged_shard(std::int64_t bucket) const;
  std::byte* main_shard(std::int64_t bucket) const;
  std::byte* state_shard(std::int64_t bucket, std::size_t array) const;
  std::size_t state_arrays(std::int64_t bucket) const;

  /// First element of this rank's shard in the parameter bucket; null for one
  /// that is external.
  std::byte* parameter_shard(std::int64_t bucket) const;

  /// The pieces (0 and 1) through which values reach the caller's memory, of
  /// gather_piece_bytes(plan) each; null where no parameter is external.
  std::byte* gather_piece(int which) const;
  std::int64_t gather_piece_bytes() const { return memory_.staging / 2; }

  /// Fills all gradients with zeros: those that the caller writes, which for an
  /// external bucket are the caller's own arrays and not the bucket.
  void zero_gradients(const ExecutionSpace& space) const;

  /// Fills all gradient buckets, external ones too, and not the caller's
  /// arrays.
  void zero_gradient_buckets(const ExecutionSpace& space) const;

  /// Bytes by purpose, without what the communicators hold for themselves.
  const Memory& memory() const { return memory_; }

 private:
  // Of doubles, whatever is stored: zeros are zeros in every type.
  using Array = Kokkos::View<double*, typename ExecutionSpace::memory_space>;

  struct Shard {
    Array memory;
    std::byte* data = nullptr;
  };

  struct BufferStorage {
    std::int64_t bytes_parameter = 0;  // of one element
    std::int64_t bytes_gradient = 0;
    std::int64_t bytes_main = 0;
    std::shared_ptr<void> parameters;
    std::shared_ptr<void> gradients;
    std::int64_t shard_elements = 0;  // of all its buckets
    Shard averaged;                   // empty where it is the gradients
    Shard main;                       // empty where it is the parameters
    std::vector<Shard> state;
  };

  /// A part of a gradient in the caller's memory.
  struct GradientBlock {
    const ExternalArray* array = nullptr;
    Range range;
  };

  void allocate_parameters(std::size_t buffer,
                           const StorageCommunicators& communicators,
                           const ExecutionSpace& space);
  void allocate(std::size_t buffer, const StorageCommunicators& communicators,
                std::size_t state_arrays, const ExecutionSpace& space);
  bool counts_parameters() const { return sharing_.place == 0; }
  void cut_gradients(const ParameterSet& parameters);
  /// which: of the arrays that an update goes through together.
  Shard allocate_shard(const char* label, std::int64_t bytes, std::size_t which,
                       const ExecutionSpace& space) const;
  const BufferStorage& buffer_of(std::int64_t bucket) const;
  Range shard_in_buffer(std::int64_t bucket) const;

  Plan plan_;
  int rank_ = 0;
  Communicator::Sharing sharing_;  // of the parameters
  std::vector<BufferStorage> buffers_;
  std::shared_ptr<void> gather_pieces_;
  std::vector<GradientBlock> gradient_blocks_;
  // Where a bucket's shard begins among the shards of its buffer.
  std::vector<std::int64_t> shard_offsets_;
  Memory memory_;
};

/// Fills memory with zeros, in parallel.
void zero_bytes(void* data, std::int64_t bytes, const ExecutionSpace& space);
/// Likewise, what nobody has used yet: by the threads that will, in huge pages
/// where they can be had.
void touch_with_zeros(void* data, std::int64_t bytes,
                      const ExecutionSpace& space);

}  // namespace kzero::detail
