// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Where every element lives: parameters -> buffers -> buckets -> shards. Pure
// integers: a plan for ten thousand ranks can be made and read on a laptop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/memory.hpp>
#include <kzero/parameter_set.hpp>
#include <kzero/range.hpp>
#include <kzero/shard_table.hpp>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace kzero {

namespace detail {
class PlanBuilder;
}  // namespace detail

/// How buckets are cut over the ranks.
/// elements: into equal shards that cross parameter borders.
/// parameters: every parameter is one rank's. Largest first, each goes to the
/// rank that has the fewest elements so far.
/// buckets: likewise every bucket, with all of its parameters.
/// A tie is the lower place's first, then the lower rank's.
enum class Partition { elements, parameters, buckets };

struct PlanOptions {
  static constexpr std::int64_t unlimited =
      std::numeric_limits<std::int64_t>::max();

  /// Ranks that share the state. 0: the size of the optimizer's communicator
  /// (make_plan called alone needs a number).
  int ranks = 0;
  Partition partition = Partition::elements;
  /// With Partition::buckets: as few buckets as need be are cut at parameter
  /// borders, until no rank has more elements than the largest parameter, or
  /// 1.05 times the mean of the ranks, whichever is more. All buckets stay
  /// whole, or the larger half of them, or the larger quarter and so on, and
  /// are given away first; where even none is not enough, it is
  /// Partition::parameters.
  bool divide = false;
  /// A bucket closes at the first parameter end at or past this many bytes of
  /// gradients; of frozen parameters, of values.
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// Every parameter once, in the order in which gradients are expected to
  /// arrive. Empty: the reverse order of declaration.
  std::vector<ParameterId> order = {};
};

/// Every parameter starts on a multiple of this many elements, and every shard
/// too: 64 elements are whole cache lines for any type.
inline constexpr std::int64_t alignment_elements = 64;

/// Parameters of equal type, gradient type and chunk, one after another; those
/// that are frozen have buffers of their own, and so have those in the caller's
/// memory (external), of which the optimizer holds gradients and state alone.
/// Of names that are tied to one storage, the one declared first stands here.
struct Buffer {
  DType dtype = DType::float32;
  DType gradient_dtype = DType::float32;
  int chunk = 0;
  bool frozen = false;
  bool external = false;
  std::int64_t size = 0;  // elements, padding included
  /// As they lie in memory: in layout order, but where parameters have an owner
  /// in the order of the owners within each bucket.
  std::vector<ParameterId> parameters;

  /// Whether the averaged gradient has memory apart from the gradients, and the
  /// main parameters apart from the parameters.
  bool has_averaged() const {
    return !frozen && main_dtype(dtype) != gradient_dtype;
  }
  bool has_main() const {
    return !frozen && (external || main_dtype(dtype) != dtype);
  }
};

/// A stretch of a buffer that is communicated at once. Holds whole parameters.
struct Bucket {
  int buffer = 0;
  Range range;       // in the buffer, padding included
  Range parameters;  // places in Buffer::parameters
};

/// Where one parameter lies.
struct Placement {
  int buffer = 0;
  std::int64_t bucket = 0;
  Range in_buffer;
};

/// The meeting of one parameter with one rank's shard of its bucket. The four
/// ranges have one size and name the same elements.
struct Segment {
  ParameterId parameter;
  std::int64_t bucket = 0;
  Range in_buffer;
  Range in_bucket;
  Range in_shard;
  Range in_parameter;
};

class Plan {
 public:
  int ranks() const { return ranks_; }
  Partition partition() const { return partition_; }
  /// PlanOptions::divide.
  bool divide() const { return divide_; }
  std::int64_t bucket_bytes() const { return bucket_bytes_; }
  std::span<const Buffer> buffers() const { return buffers_; }

  /// In layout order: the order in which their last gradients are expected.
  /// Collectives go out in this order on every rank. Those of frozen
  /// parameters come last, and are neither reduced nor gathered.
  std::span<const Bucket> buckets() const { return buckets_; }

  /// Throws std::out_of_range for a bucket that is not there.
  const Buffer& buffer_of(std::int64_t bucket) const {
    return buffers_.at(static_cast<std::size_t>(
        buckets_.at(static_cast<std::size_t>(bucket)).buffer));
  }

  /// How many of them are not of frozen parameters.
  std::int64_t trained_buckets() const { return trained_buckets_; }

  /// Throws InvalidArgument when id is not in the plan.
  const Placement& placement(ParameterId id) const;

  /// The rank that owns all of a parameter, of no elements as well. None with
  /// Partition::elements on several ranks, and of one that is frozen. Throws
  /// InvalidArgument when id is not in the plan.
  std::optional<int> owner(ParameterId id) const;

  /// How bucket (an index into buckets()) is cut. The table refers to the plan
  /// where shards differ in size: frozen buckets are all the first rank's then.
  ShardTable shards(std::int64_t bucket) const;

  /// What a rank owns of what is trained: real elements only, no padding; by
  /// bucket, then by place. Costs O(segments of that rank), and for each bucket
  /// the logarithm of its parameters; not O(ranks).
  std::vector<Segment> segments(int rank) const;

  /// Bytes that a rank holds, by purpose: what ShardedOptimizer::memory()
  /// reports after a step with the communicator mpi, or self for one rank, and
  /// parameters of each rank; but for Memory::work, which depends on the rules.
  /// state_arrays: for each buffer, those of its most demanding rule.
  Memory memory(int rank, std::span<const std::size_t> state_arrays) const;
  /// With as many in every buffer: AdamW has 2.
  Memory memory(int rank, std::size_t state_arrays) const;

 private:
  friend class detail::PlanBuilder;
  int ranks_ = 1;
  Partition partition_ = Partition::elements;
  bool divide_ = false;
  std::int64_t bucket_bytes_ = 0;
  std::int64_t trained_buckets_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<Bucket> buckets_;
  std::vector<Placement> placements_;
  // Where parameters have owners: by parameter, and ranks + 1 offsets of
  // shards for each bucket.
  std::vector<std::int32_t> owners_;
  std::vector<std::int64_t> offsets_;
};

/// Lays the parameters out. Local and pure: equal input gives an equal plan.
/// With Partition::elements linear in the parameters, independent of the ranks;
/// with the others O(parameters * log(parameters * ranks) + buckets * ranks),
/// and 8 bytes of memory for each bucket and rank.
/// Throws InvalidArgument for ranks or bucket_bytes below 1, for divide without
/// Partition::buckets, and for an order that is not a permutation of the
/// parameters.
Plan make_plan(const ParameterSet& parameters, const PlanOptions& options);

}  // namespace kzero
