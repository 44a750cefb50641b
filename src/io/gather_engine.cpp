// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/gather_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <kzero/error.hpp>
#include <utility>

#include "comm/aligned_memory.hpp"
#include "core/message.hpp"
#include "optim/agreement.hpp"
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

  /// Ids of its parameters, in layout order.
  std::span<const ParameterId> ids() const {
    return std::span(buffer_.parameters)
        .subspan(static_cast<std::size_t>(bucket_.parameters.begin),
                 static_cast<std::size_t>(bucket_.parameters.size()));
  }

  /// Where a parameter lies in the bucket.
  Range range(ParameterId id) const {
    return shift(optimizer_.plan().placement(id).in_buffer,
                 -bucket_.range.begin);
  }

  /// Calls f(place in the layout, first element in the bucket) for each
  /// parameter that has this place in its list of arrays.
  template <class F>
  void for_each(const FileLayout& layout, std::size_t array, F&& f) const {
    for (const ParameterId id : ids()) {
      const auto found = std::ranges::lower_bound(layout.parameters, id, {},
                                                  &ParameterLayout::id);
      if (array < found->arrays.size())
        f(static_cast<std::size_t>(found - layout.parameters.begin()),
          range(id).begin);
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
    const auto write = [&](std::size_t array, const std::byte* bucket) {
      status.attempt([&] {
        walk.for_each(
            *root.layout, array, [&](std::size_t place, std::int64_t offset) {
              const ParameterLayout& parameter = root.layout->parameters[place];
              const ArrayLayout& layout = parameter.arrays[array];
              root.writer->write(parameter, layout,
                                 bucket + offset * size_of(layout.dtype));
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

namespace {

/// Loads what rank 0 reads into one bucket.
class BucketLoad {
 public:
  BucketLoad(ShardedOptimizer& optimizer, std::int64_t index,
             const RootFile& root, std::span<const std::int64_t> loaded)
      : optimizer_(optimizer),
        index_(index),
        walk_(optimizer, index),
        root_(root),
        loaded_(loaded) {}

  bool has_work() const {
    return std::ranges::any_of(walk_.ids(),
                               [&](ParameterId id) { return is_loaded(id); });
  }

  void load_values(RootStatus& status) {
    read(0, walk_.values(), status);
    const std::int64_t width = size_of(walk_.dtype());
    for (const Range& run : loaded_runs())
      optimizer_.communicator()->broadcast(walk_.values() + run.begin * width,
                                           run.size() * width, 0,
                                           {"load", index_});
  }

  void load_state(std::size_t k, Staging& staging, Staging& landing,
                  RootStatus& status) {
    Communicator& communicator = *optimizer_.communicator();
    const ShardArray state = walk_.state()[k];
    const std::int64_t width = size_of(state.dtype);
    // What is not read is zero: padding, state that starts anew, and arrays
    // that a parameter does not have.
    if (communicator.rank() == 0)
      std::memset(staging.data(), 0,
                  static_cast<std::size_t>(walk_.size() * width));
    read(k + 1, staging.data(), status);
    staging.use([&] {
      landing.use([&] {
        communicator.scatter(staging.data(), landing.data(), walk_.shards(),
                             width, 0, {"load", index_});
      });
    });
    keep(landing.data(), static_cast<std::byte*>(state.data), width);
  }

 private:
  bool is_loaded(ParameterId id) const {
    return loaded_[static_cast<std::size_t>(id.index)] != 0;
  }

  /// On rank 0, fills the loaded parameters' elements in the bucket.
  void read(std::size_t array, std::byte* bucket, RootStatus& status) {
    status.attempt([&] {
      walk_.for_each(
          *root_.layout, array, [&](std::size_t place, std::int64_t offset) {
            const auto& sources = (*root_.sources)[place];
            if (sources.empty()) return;
            const ParameterLayout& parameter = root_.layout->parameters[place];
            const ArrayLayout& layout = parameter.arrays[array];
            std::byte* data = bucket + offset * size_of(layout.dtype);
            if (sources[array] == ElementSource::file)
              root_.reader->read(parameter, layout, data);
            else if (sources[array] == ElementSource::value)
              widen(walk_.range(parameter.id), data);
          });
    });
    status.share(partly_loaded);
  }

  /// The 16-bit elements as float32.
  void widen(Range range, std::byte* data) const {
    visit_dtype(walk_.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (sizeof(T) == 2) {
        const T* values = reinterpret_cast<const T*>(walk_.values());
        auto* main = reinterpret_cast<float*>(data);
        for (std::int64_t i = 0; i < range.size(); ++i)
          main[i] = static_cast<float>(values[range.begin + i]);
      }
    });
  }

  /// Stretches of loaded parameters with no other between them.
  std::vector<Range> loaded_runs() const {
    std::vector<Range> runs;
    bool open = false;
    for (const ParameterId id : walk_.ids()) {
      const Range range = walk_.range(id);
      if (is_loaded(id) && open)
        runs.back().end = range.end;
      else if (is_loaded(id))
        runs.push_back(range);
      open = is_loaded(id);
    }
    std::erase_if(runs, [](const Range& run) { return run.size() == 0; });
    return runs;
  }

  /// Copies what this rank owns of the loaded parameters.
  void keep(const std::byte* from, std::byte* to, std::int64_t width) const {
    for (const ParameterId id : walk_.ids()) {
      if (!is_loaded(id)) continue;
      for (const Segment& segment : optimizer_.segments(id)) {
        const std::int64_t begin = segment.in_shard.begin * width;
        if (segment.bucket == index_)
          std::memcpy(
              to + begin, from + begin,
              static_cast<std::size_t>(segment.in_shard.size() * width));
      }
    }
  }

  ShardedOptimizer& optimizer_;
  std::int64_t index_;
  BucketWalk walk_;
  const RootFile& root_;
  std::span<const std::int64_t> loaded_;
};

/// Collective. On every rank, room for its largest shard of a state array.
/// Throws CheckpointError on all of them when one has no memory.
void make_landing(ShardedOptimizer& optimizer, Staging& landing) {
  std::string problem;
  try {
    landing.allocate(largest_shard(optimizer));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  try {
    throw_if_any(*optimizer.communicator(), {"load"}, problem);
  } catch (const InvalidArgument& error) {
    throw CheckpointError(
        concat("cannot load the checkpoint (", error.what(), ")"));
  }
}

}  // namespace

void scatter_arrays(ShardedOptimizer& optimizer, const RootFile& root,
                    std::span<const std::int64_t> loaded, RootStatus& status) {
  Staging staging;
  make_staging(optimizer, status, staging);
  status.share();
  // The state's own memory is not the communicator's: what arrives after an
  // error must not find it freed.
  Staging landing;
  make_landing(optimizer, landing);
  for (std::int64_t b = 0; b < bucket_count(optimizer); ++b) {
    BucketLoad load(optimizer, b, root, loaded);
    if (!load.has_work()) continue;
    load.load_values(status);
    const std::size_t arrays =
        OptimizerAccess::shard_arrays(optimizer, b).size();
    for (std::size_t k = 0; k < arrays; ++k)
      load.load_state(k, staging, landing, status);
  }
}

}  // namespace kzero::detail
