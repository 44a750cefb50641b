// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/gather_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/convert_elements.hpp"
#include "io/staging.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

constexpr const char* partly_loaded =
    "; parameters and state are partly overwritten: load another checkpoint "
    "before going on";

/// One bucket of the optimizer and its parameters' places in it.
class BucketWalk {
 public:
  BucketWalk(ShardedOptimizer& optimizer, std::int64_t index)
      : optimizer_(optimizer),
        index_(index),
        bucket_(optimizer.plan().buckets()[static_cast<std::size_t>(index)]),
        buffer_(optimizer.plan()
                    .buffers()[static_cast<std::size_t>(bucket_.buffer)]) {}

  std::int64_t size() const { return bucket_.range.size(); }
  ShardTable shards() const { return optimizer_.plan().shards(index_); }
  std::vector<ShardArray> state() const {
    return OptimizerAccess::shard_arrays(optimizer_, index_);
  }

  /// Bytes of the largest of what passes through staging: state arrays, and
  /// values that the caller has in strided memory.
  std::int64_t staging_bytes() const {
    std::int64_t bytes = 0;
    for (const ParameterId id : ids())
      if (OptimizerAccess::contiguous_value(optimizer_, id) == nullptr)
        bytes = std::max(bytes, range(id).size() * size_of(buffer_.dtype));
    for (const ShardArray& shard : state())
      bytes = std::max(bytes, size() * size_of(shard.dtype));
    return bytes;
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

/// On the root, room for the largest array of a bucket.
void make_staging(ShardedOptimizer& optimizer, RootStatus& status,
                  Staging& staging) {
  status.attempt([&] {
    std::int64_t bytes = 0;
    for (std::int64_t b = 0; b < bucket_count(optimizer); ++b)
      bytes = std::max(bytes, BucketWalk(optimizer, b).staging_bytes());
    staging.allocate(bytes);
  });
}

}  // namespace

void gather_arrays(ShardedOptimizer& optimizer, const GatherRoot& root,
                   RootStatus& status) {
  Communicator& communicator = *optimizer.communicator();
  Staging staging;
  make_staging(optimizer, status, staging);
  for (std::int64_t b = 0; b < bucket_count(optimizer); ++b) {
    // The others would wait for the root in the gather in any case: that they
    // ask first costs nothing, and a failed save ends here.
    status.share();
    const BucketWalk walk(optimizer, b);
    // data_of(parameter, first byte in the bucket): where the array lies.
    const auto write = [&](std::size_t array, auto&& data_of) {
      status.attempt([&] {
        walk.for_each(
            *root.layout, array, [&](std::size_t place, std::int64_t offset) {
              const ParameterLayout& parameter = root.layout->parameters[place];
              const ArrayLayout& layout = parameter.arrays[array];
              root.sink->write(
                  parameter, layout,
                  data_of(parameter.id, offset * size_of(layout.dtype)));
            });
      });
    };
    write(0, [&](ParameterId id, std::int64_t) -> const std::byte* {
      if (const std::byte* value =
              OptimizerAccess::contiguous_value(optimizer, id))
        return value;
      OptimizerAccess::read_value(
          optimizer, id, {0, optimizer.parameters()[id].size}, staging.data());
      return staging.data();
    });
    const std::vector<ShardArray> state = walk.state();
    for (std::size_t k = 0; k < state.size(); ++k) {
      staging.use([&] {
        communicator.gather(state[k].data, staging.data(), walk.shards(),
                            size_of(state[k].dtype), status.root(),
                            {status.operation(), b});
      });
      write(k + 1, [&](ParameterId, std::int64_t byte) {
        return staging.data() + byte;
      });
    }
  }
  status.share();
}

namespace {

/// Loads what the root reads into one bucket.
class BucketLoad {
 public:
  BucketLoad(ShardedOptimizer& optimizer, std::int64_t index,
             const ScatterRoot& root, std::span<const std::int64_t> loaded)
      : optimizer_(optimizer),
        index_(index),
        walk_(optimizer, index),
        root_(root),
        loaded_(loaded) {}

  bool has_work() const {
    return std::ranges::any_of(walk_.ids(),
                               [&](ParameterId id) { return is_loaded(id); });
  }

  void load_values(Staging& staging, RootStatus& status) {
    for_each_loaded(
        0, status,
        [&](const ParameterLayout& parameter, const ElementOrigin& origin,
            std::int64_t) {
          const ParameterId id = parameter.id;
          std::byte* const value =
              OptimizerAccess::contiguous_value(optimizer_, id);
          std::byte* const data = value != nullptr ? value : staging.data();
          read(parameter, parameter.arrays[0], origin, data);
          if (value == nullptr)
            OptimizerAccess::write_value(
                optimizer_, id, {0, optimizer_.parameters()[id].size}, data);
        });
    for (const Range& run : loaded_runs())
      OptimizerAccess::broadcast_values(optimizer_, index_, run, status.root(),
                                        status.operation());
    for (const ParameterId id : walk_.ids())
      if (is_loaded(id)) OptimizerAccess::take_main_from_value(optimizer_, id);
  }

  void load_state(std::size_t k, Staging& staging, Staging& landing,
                  RootStatus& status) {
    Communicator& communicator = *optimizer_.communicator();
    const ShardArray state = walk_.state()[k];
    const std::int64_t width = size_of(state.dtype);
    // What is not read is zero: padding, state that starts anew, and arrays
    // that a parameter does not have.
    if (status.is_root())
      std::memset(staging.data(), 0,
                  static_cast<std::size_t>(walk_.size() * width));
    for_each_loaded(k + 1, status,
                    [&](const ParameterLayout& parameter,
                        const ElementOrigin& origin, std::int64_t at) {
                      std::byte* const data = staging.data() + at * width;
                      if (origin.is_in_file())
                        read(parameter, parameter.arrays[k + 1], origin, data);
                      else if (origin.source == ElementSource::value)
                        OptimizerAccess::read_as_main(
                            optimizer_, parameter.id,
                            {0, optimizer_.parameters()[parameter.id].size},
                            data);
                    });
    staging.use([&] {
      landing.use([&] {
        communicator.scatter(staging.data(), landing.data(), walk_.shards(),
                             width, status.root(),
                             {status.operation(), index_});
      });
    });
    keep(landing.data(), static_cast<std::byte*>(state.data), width);
  }

 private:
  bool is_loaded(ParameterId id) const {
    return loaded_[static_cast<std::size_t>(id.index)] != 0;
  }

  /// On the root: an array, from what the file has for it.
  void read(const ParameterLayout& parameter, const ArrayLayout& array,
            const ElementOrigin& origin, std::byte* data) const {
    const ArrayLayout in_file = array_in_file(array, origin);
    if (in_file.dtype == array.dtype)
      return root_.source->read(parameter, in_file, data);
    root_.source->read_pieces(
        parameter, in_file,
        [&](std::int64_t place, std::span<const std::byte> bytes) {
          const std::int64_t width = size_of(in_file.dtype);
          convert_elements(in_file.dtype, bytes.data(), array.dtype,
                           data + place / width * size_of(array.dtype),
                           std::ssize(bytes) / width);
        });
  }

  /// On the root, calls f(parameter, where the array comes from, first element
  /// in the bucket) for each loaded parameter that has this array.
  template <class F>
  void for_each_loaded(std::size_t array, RootStatus& status, F&& f) {
    status.attempt([&] {
      walk_.for_each(
          *root_.layout, array, [&](std::size_t place, std::int64_t offset) {
            const auto origins = (*root_.origins)[place];
            if (!origins.empty())
              f(root_.layout->parameters[place], origins[array], offset);
          });
    });
    status.share(partly_loaded);
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
  const ScatterRoot& root_;
  std::span<const std::int64_t> loaded_;
};

/// Collective. On every rank, room for its largest shard of a state array.
/// Throws CheckpointError on all of them when one has no memory.
void make_landing(ShardedOptimizer& optimizer, const RootStatus& status,
                  Staging& landing) {
  std::string problem;
  try {
    landing.allocate(largest_shard(optimizer));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  try {
    throw_if_any(*optimizer.communicator(), {status.operation()}, problem);
  } catch (const InvalidArgument& error) {
    throw CheckpointError(
        concat("cannot load parameters and state (", error.what(), ")"));
  }
}

}  // namespace

void scatter_arrays(ShardedOptimizer& optimizer, const ScatterRoot& root,
                    std::span<const std::int64_t> loaded, RootStatus& status) {
  Staging staging;
  make_staging(optimizer, status, staging);
  status.share();
  // The state's own memory is not the communicator's: what arrives after an
  // error must not find it freed.
  Staging landing;
  make_landing(optimizer, status, landing);
  for (std::int64_t b = 0; b < bucket_count(optimizer); ++b) {
    BucketLoad load(optimizer, b, root, loaded);
    if (!load.has_work()) continue;
    load.load_values(staging, status);
    const std::size_t arrays =
        OptimizerAccess::shard_arrays(optimizer, b).size();
    for (std::size_t k = 0; k < arrays; ++k)
      load.load_state(k, staging, landing, status);
  }
}

}  // namespace kzero::detail
