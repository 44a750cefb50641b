// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/gather_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <kzero/error.hpp>
#include <utility>

#include "comm/aligned_memory.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

constexpr const char* partly_loaded =
    "; parameters and state are partly overwritten: load another checkpoint "
    "before going on";

/// Memory that peers write to.
class Staging {
 public:
  Staging() = default;
  ~Staging() { free_aligned(data_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void allocate(std::int64_t bytes) {
    data_ = static_cast<std::byte*>(allocate_aligned(bytes));
  }
  std::byte* data() { return data_; }

  /// Calls f, a collective on this memory. When it breaks off, peers may still
  /// write here: the memory is leaked.
  template <class F>
  void use(F&& f) {
    try {
      f();
    } catch (const CommunicationError&) {
      leak(std::exchange(data_, nullptr));
      throw;
    }
  }

 private:
  std::byte* data_ = nullptr;
};

/// One bucket of the optimizer and its parameters' places in it.
class BucketWalk {
 public:
  BucketWalk(ShardedOptimizer& optimizer, std::int64_t index)
      : optimizer_(optimizer),
        index_(index),
        bucket_(optimizer.plan().buckets()[static_cast<std::size_t>(index)]),
        buffer_(optimizer.plan()
                    .buffers()[static_cast<std::size_t>(bucket_.buffer)]) {}

  DType dtype() const { return buffer_.dtype; }
  std::int64_t size() const { return bucket_.range.size(); }
  ShardTable shards() const { return optimizer_.plan().shards(index_); }
  std::byte* values() const {
    return static_cast<std::byte*>(
        OptimizerAccess::parameter_bucket(optimizer_, index_));
  }
  std::vector<ShardArray> state() const {
    return OptimizerAccess::shard_arrays(optimizer_, index_);
  }

  /// Calls f(parameter, array, address of its elements in bucket) for each
  /// parameter that has this place in its list of arrays.
  template <class F>
  void for_each(const FileLayout& layout, std::size_t array, std::byte* bucket,
                F&& f) const {
    for (std::int64_t i = bucket_.parameters.begin; i < bucket_.parameters.end;
         ++i) {
      const ParameterId id = buffer_.parameters[static_cast<std::size_t>(i)];
      const auto& parameter =
          layout.parameters[static_cast<std::size_t>(id.index)];
      if (array >= parameter.arrays.size()) continue;
      const std::int64_t offset =
          optimizer_.plan().placement(id).in_buffer.begin - bucket_.range.begin;
      f(parameter, parameter.arrays[array],
        bucket + offset * size_of(parameter.arrays[array].dtype));
    }
  }

 private:
  ShardedOptimizer& optimizer_;
  std::int64_t index_;
  const Bucket& bucket_;
  const Buffer& buffer_;
};

std::int64_t bucket_count(const ShardedOptimizer& optimizer) {
  return static_cast<std::int64_t>(optimizer.plan().buckets().size());
}

/// Bytes of this rank's largest shard of a state array.
std::int64_t largest_shard(ShardedOptimizer& optimizer) {
  const int rank = optimizer.communicator()->rank();
  std::int64_t bytes = 0;
  for (std::int64_t b = 0; b < bucket_count(optimizer); ++b) {
    const BucketWalk walk(optimizer, b);
    for (const ShardArray& shard : walk.state())
      bytes = std::max(bytes, walk.shards().size(rank) * size_of(shard.dtype));
  }
  return bytes;
}

/// On rank 0, room for what a bucket's largest state array takes.
void make_staging(ShardedOptimizer& optimizer, RootStatus& status,
                  Staging& staging) {
  status.attempt([&] {
    std::int64_t bytes = 0;
    for (std::int64_t b = 0; b < bucket_count(optimizer); ++b) {
      const BucketWalk walk(optimizer, b);
      for (const ShardArray& shard : walk.state())
        bytes = std::max(bytes, walk.size() * size_of(shard.dtype));
    }
    staging.allocate(bytes);
  });
}

}  // namespace

void gather_arrays(ShardedOptimizer& optimizer, const RootFile& root,
                   RootStatus& status) {
  Communicator& communicator = *optimizer.communicator();
  Staging staging;
  make_staging(optimizer, status, staging);
  for (std::int64_t b = 0; b < bucket_count(optimizer); ++b) {
    // The others would wait for rank 0 in the gather in any case: that they
    // ask first costs nothing, and a failed save ends here.
    status.share();
    const BucketWalk walk(optimizer, b);
    const auto write = [&](std::size_t array, std::byte* bucket) {
      status.attempt([&] {
        walk.for_each(*root.layout, array, bucket,
                      [&](const ParameterLayout& parameter,
                          const ArrayLayout& layout, const std::byte* data) {
                        root.writer->write(parameter, layout, data);
                      });
      });
    };
    write(0, walk.values());
    const std::vector<ShardArray> state = walk.state();
    for (std::size_t k = 0; k < state.size(); ++k) {
      staging.use([&] {
        communicator.gather(state[k].data, staging.data(), walk.shards(),
                            size_of(state[k].dtype), 0, {"save", b});
      });
      write(k + 1, staging.data());
    }
  }
  status.share();
}

void scatter_arrays(ShardedOptimizer& optimizer, const RootFile& root,
                    RootStatus& status) {
  Communicator& communicator = *optimizer.communicator();
  Staging staging;
  make_staging(optimizer, status, staging);
  status.share();
  // The state's own memory is not the communicator's: what arrives after an
  // error must not find it freed.
  Staging landing;
  landing.allocate(largest_shard(optimizer));
  for (std::int64_t b = 0; b < bucket_count(optimizer); ++b) {
    const BucketWalk walk(optimizer, b);
    const auto read = [&](std::size_t array, std::byte* bucket) {
      status.attempt([&] {
        walk.for_each(*root.layout, array, bucket,
                      [&](const ParameterLayout& parameter,
                          const ArrayLayout& layout, std::byte* data) {
                        root.reader->read(parameter, layout, data);
                      });
      });
      status.share(partly_loaded);
    };
    read(0, walk.values());
    communicator.broadcast(walk.values(), walk.size() * size_of(walk.dtype()),
                           0, {"load", b});
    const std::vector<ShardArray> state = walk.state();
    for (std::size_t k = 0; k < state.size(); ++k) {
      const std::int64_t bytes = walk.size() * size_of(state[k].dtype);
      // Padding, and parameters that have no such array, are zero.
      if (communicator.rank() == 0)
        std::memset(staging.data(), 0, static_cast<std::size_t>(bytes));
      read(k + 1, staging.data());
      const std::int64_t shard = walk.shards().size(communicator.rank());
      const auto shard_bytes =
          static_cast<std::size_t>(shard * size_of(state[k].dtype));
      staging.use([&] {
        landing.use([&] {
          communicator.scatter(staging.data(), landing.data(), walk.shards(),
                               size_of(state[k].dtype), 0, {"load", b});
        });
      });
      if (shard_bytes > 0)
        std::memcpy(state[k].data, landing.data(), shard_bytes);
    }
  }
}

}  // namespace kzero::detail
