// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The memory of an optimizer on this rank: flat parameter and gradient buffers,
// allocated by the communicator, and the shards of the state in Kokkos views.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/memory.hpp>
#include <kzero/parameter_view.hpp>
#include <kzero/plan.hpp>
#include <memory>
#include <span>
#include <vector>

namespace kzero::detail {

class Storage {
 public:
  /// Everything starts as zeros, first touched by the threads of space. gathers
  /// sends and receives parameters, reductions gradients: each allocates them.
  /// plan outlives the storage. state_arrays: for each buffer.
  Storage(const Plan& plan, Communicator& gathers, Communicator& reductions,
          std::span<const std::size_t> state_arrays,
          const ExecutionSpace& space);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// First element of a bucket.
  std::byte* parameter_bucket(std::int64_t bucket) const;
  std::byte* gradient_bucket(std::int64_t bucket) const;

  /// First element of this rank's shard of a bucket, of main_dtype. The
  /// averaged gradient lies in the gradient bucket, and the main parameters in
  /// the parameter bucket, where the types are the same.
  std::byte* averaged_shard(std::int64_t bucket) const;
  std::byte* main_shard(std::int64_t bucket) const;
  std::byte* state_shard(std::int64_t bucket, std::size_t array) const;
  std::size_t state_arrays(std::int64_t bucket) const;

  /// First element of this rank's shard in the parameter bucket.
  std::byte* parameter_shard(std::int64_t bucket) const;

  /// Fills all gradients with zeros.
  void zero_gradients(const ExecutionSpace& space) const;

  /// Bytes by purpose; staging is the communicator's and not counted here.
  const Memory& memory() const { return memory_; }

 private:
  // Of doubles, whatever is stored: zeros are zeros in every type.
  using Array = Kokkos::View<double*, typename ExecutionSpace::memory_space>;

  struct BufferStorage {
    std::int64_t bytes_parameter = 0;  // of one element
    std::int64_t bytes_gradient = 0;
    std::int64_t bytes_main = 0;
    std::shared_ptr<void> parameters;
    std::shared_ptr<void> gradients;
    std::int64_t shard_elements = 0;  // of all its buckets
    Array averaged;                   // empty where it is the gradients
    Array main;                       // empty where it is the parameters
    std::vector<Array> state;
  };

  std::shared_ptr<void> allocate_flat(Communicator& communicator,
                                      const char* label, std::int64_t bytes,
                                      const ExecutionSpace& space) const;
  Array allocate_shard(const char* label, std::int64_t bytes,
                       const ExecutionSpace& space) const;
  const BufferStorage& buffer_of(std::int64_t bucket) const;
  Range shard_in_buffer(std::int64_t bucket) const;

  const Plan& plan_;
  int rank_ = 0;
  std::vector<BufferStorage> buffers_;
  // Where a bucket's shard begins among the shards of its buffer.
  std::vector<std::int64_t> shard_offsets_;
  Memory memory_;
};

/// Fills memory with zeros, in parallel.
void zero_bytes(void* data, std::int64_t bytes, const ExecutionSpace& space);

}  // namespace kzero::detail
