// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <array>
#include <iterator>
#include <kzero/plan.hpp>
#include <unordered_map>
#include <utility>

#include "core/message.hpp"

namespace kzero {

namespace {

// Of all buffers together: the bytes of any one array of the optimizer, at 8
// bytes an element, stay within 2^62.
constexpr std::int64_t maximum_elements = std::int64_t{1} << 59;

constexpr int unplaced = -1;
constexpr int placed_with_other = -2;  // tied: lies where the other one does

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Finds the buffer of a parameter. Kinds (types, frozen, external) and chunks
/// come in runs or take turns, so the last chunk of each kind is kept at hand.
class BufferIndex {
 public:
  /// The buffer's number; next when it is a new one.
  int find_or_add(const ParameterInfo& parameter, int next) {
    const auto kind = static_cast<unsigned>(parameter.dtype) * 16u +
                      static_cast<unsigned>(parameter.gradient_dtype) * 4u +
                      (parameter.frozen ? 2u : 0u) +
                      (parameter.external ? 1u : 0u);
    Last& last = last_[kind];
    if (last.chunk != parameter.chunk) {
      const auto key =
          static_cast<std::uint64_t>(parameter.chunk) * last_.size() + kind;
      last = {parameter.chunk, numbers_.try_emplace(key, next).first->second};
    }
    return last.buffer;
  }

 private:
  struct Last {
    int chunk = -1;
    int buffer = -1;
  };
  std::array<Last, 64> last_;
  std::unordered_map<std::uint64_t, int> numbers_;
};

/// A bucket in the making: the last one of its buffer.
struct OpenBucket {
  Bucket bucket;
  std::int64_t end = 0;  // of its last parameter, in the buffer
  bool open = false;
};

/// Lays parameters out one at a time, in layout order.
class Builder {
 public:
  Builder(const ParameterSet& parameters, const PlanOptions& options)
      : parameters_(parameters.parameters()),
        shard_granularity_(alignment_elements * options.ranks),
        bucket_bytes_(options.bucket_bytes),
        placements_(parameters_.size(), Placement{unplaced, 0, {}}) {}

  bool placed(ParameterId id) const {
    return placements_[static_cast<std::size_t>(id.index)].buffer != unplaced;
  }

  void place(ParameterId id) {
    const ParameterInfo& parameter =
        parameters_[static_cast<std::size_t>(id.index)];
    if (parameter.storage != id) {
      placements_[static_cast<std::size_t>(id.index)].buffer =
          placed_with_other;
      return;
    }
    const int number =
        index_.find_or_add(parameter, static_cast<int>(buffers_.size()));
    const auto b = static_cast<std::size_t>(number);
    if (b == buffers_.size()) add_buffer(parameter);
    Buffer& buffer = buffers_[b];
    OpenBucket& current = open_[b];
    if (!current.open) open_bucket(number, buffer, current);

    const std::int64_t begin = round_up(current.end, alignment_elements);
    take(begin - current.end + parameter.size, parameter);
    current.end = begin + parameter.size;
    // The position in layout order holds the bucket's place until finish().
    placements_[static_cast<std::size_t>(id.index)] = {
        .buffer = number,
        .bucket = position_++,
        .in_buffer = {begin, current.end}};
    buffer.parameters.push_back(id);

    const std::int64_t bytes =
        (current.end - current.bucket.range.begin) *
        size_of(buffer.frozen ? buffer.dtype : buffer.gradient_dtype);
    if (bytes >= bucket_bytes_) close_bucket(current);
  }

  void finish() {
    // Buckets that the cap closed stand in order already: each was closed at
    // its last parameter.
    const auto capped = std::ssize(buckets_);
    for (OpenBucket& current : open_)
      if (current.open) close_bucket(current);
    const auto earlier = [this](const Bucket& a, const Bucket& b) {
      return last_position(a) < last_position(b);
    };
    const auto rest = buckets_.begin() + capped;
    std::sort(rest, buckets_.end(), earlier);
    std::inplace_merge(buckets_.begin(), rest, buckets_.end(), earlier);
    const auto frozen = std::stable_partition(
        buckets_.begin(), buckets_.end(), [this](const Bucket& bucket) {
          return !buffers_[static_cast<std::size_t>(bucket.buffer)].frozen;
        });
    trained_buckets_ = frozen - buckets_.begin();
    for (std::int64_t b = 0; const Bucket& bucket : buckets_)
      number_parameters(bucket, b++);
    for (std::size_t i = 0; i < placements_.size(); ++i)
      if (placements_[i].buffer == placed_with_other)
        placements_[i] =
            placements_[static_cast<std::size_t>(parameters_[i].storage.index)];
  }

  std::int64_t trained_buckets() const { return trained_buckets_; }

  std::vector<Buffer> take_buffers() { return std::move(buffers_); }
  std::vector<Bucket> take_buckets() { return std::move(buckets_); }
  std::vector<Placement> take_placements() { return std::move(placements_); }

 private:
  void add_buffer(const ParameterInfo& parameter) {
    buffers_.push_back({.dtype = parameter.dtype,
                        .gradient_dtype = parameter.gradient_dtype,
                        .chunk = parameter.chunk,
                        .frozen = parameter.frozen,
                        .external = parameter.external != nullptr,
                        .size = 0,
                        .parameters = {}});
    open_.emplace_back();
  }

  static void open_bucket(int number, const Buffer& buffer,
                          OpenBucket& current) {
    const auto first = static_cast<std::int64_t>(buffer.parameters.size());
    current.bucket = {.buffer = number,
                      .range = {buffer.size, buffer.size},
                      .parameters = {first, first}};
    current.end = buffer.size;
    current.open = true;
  }

  void close_bucket(OpenBucket& current) {
    Bucket& bucket = current.bucket;
    Buffer& buffer = buffers_[static_cast<std::size_t>(bucket.buffer)];
    const std::int64_t used = current.end - bucket.range.begin;
    const std::int64_t size = round_up(used, shard_granularity_);
    const ParameterId last = buffer.parameters.back();
    take(size - used, parameters_[static_cast<std::size_t>(last.index)]);
    bucket.range.end = bucket.range.begin + size;
    bucket.parameters.end = static_cast<std::int64_t>(buffer.parameters.size());
    buffer.size = bucket.range.end;
    buckets_.push_back(bucket);
    current.open = false;
  }

  /// Counts elements before they are laid out, so that no sum can overflow.
  void take(std::int64_t elements, const ParameterInfo& parameter) {
    if (elements > maximum_elements - total_)
      throw InvalidArgument(
          detail::concat("the parameters do not fit (at parameter ",
                         detail::quoted(parameter.name),
                         ", expected at most 2^59 elements of "
                         "all parameters and padding, got ",
                         total_, " + ", elements,
                         "): check the extents and the number of ranks"));
    total_ += elements;
  }

  ParameterId parameter_at(const Bucket& bucket, std::int64_t place) const {
    return buffers_[static_cast<std::size_t>(bucket.buffer)]
        .parameters[static_cast<std::size_t>(place)];
  }

  std::int64_t last_position(const Bucket& bucket) const {
    const ParameterId last = parameter_at(bucket, bucket.parameters.end - 1);
    return placements_[static_cast<std::size_t>(last.index)].bucket;
  }

  void number_parameters(const Bucket& bucket, std::int64_t number) {
    for (std::int64_t p = bucket.parameters.begin; p < bucket.parameters.end;
         ++p) {
      const ParameterId id = parameter_at(bucket, p);
      placements_[static_cast<std::size_t>(id.index)].bucket = number;
    }
  }

  std::span<const ParameterInfo> parameters_;
  std::int64_t shard_granularity_;
  std::int64_t bucket_bytes_;
  std::int64_t position_ = 0;  // in layout order
  std::int64_t total_ = 0;     // elements so far, all buffers
  std::int64_t trained_buckets_ = 0;
  BufferIndex index_;
  std::vector<Buffer> buffers_;
  std::vector<OpenBucket> open_;  // one a buffer
  std::vector<Bucket> buckets_;
  std::vector<Placement> placements_;
};

void check(const PlanOptions& options) {
  if (options.ranks < 1)
    throw InvalidArgument(detail::concat(
        "PlanOptions::ranks is out of range (expected 1 or more, got ",
        options.ranks, "): give the number of ranks that share the state"));
  if (options.bucket_bytes < 1)
    throw InvalidArgument(detail::concat(
        "PlanOptions::bucket_bytes is out of range (expected 1 or more, got ",
        options.bucket_bytes,
        "): give a number of bytes, or PlanOptions::unlimited"));
  if (options.partition != Partition::elements)
    throw InvalidArgument(detail::concat(
        "PlanOptions::partition is unknown (expected Partition::elements, got "
        "code ",
        static_cast<int>(options.partition), "): use an enumerator"));
}

void place_in_order(Builder& builder, const ParameterSet& parameters,
                    const std::vector<ParameterId>& order) {
  if (std::ssize(order) != parameters.size())
    throw InvalidArgument(detail::concat(
        "PlanOptions::order has another length (expected ", parameters.size(),
        ", one for each parameter, got ", order.size(),
        "): give every parameter once, or leave it empty"));
  for (std::int64_t i = 0; const ParameterId id : order) {
    if (id.index < 0 || id.index >= parameters.size())
      throw InvalidArgument(detail::concat(
          "PlanOptions::order names a parameter that does not exist (at ", i,
          ", expected an index below ", parameters.size(), ", got ", id.index,
          "): give ids of this ParameterSet"));
    if (builder.placed(id))
      throw InvalidArgument(detail::concat(
          "PlanOptions::order names a parameter twice (at ", i, ", parameter ",
          detail::quoted(parameters[id].name), "): give every parameter once"));
    builder.place(id);
    ++i;
  }
}

}  // namespace

Plan make_plan(const ParameterSet& parameters, const PlanOptions& options) {
  check(options);
  Builder builder(parameters, options);
  if (options.order.empty()) {
    for (std::int64_t i = parameters.size() - 1; i >= 0; --i)
      builder.place(ParameterId{i});
  } else {
    place_in_order(builder, parameters, options.order);
  }
  builder.finish();

  Plan plan;
  plan.ranks_ = options.ranks;
  plan.bucket_bytes_ = options.bucket_bytes;
  plan.trained_buckets_ = builder.trained_buckets();
  plan.buffers_ = builder.take_buffers();
  plan.buckets_ = builder.take_buckets();
  plan.placements_ = builder.take_placements();
  return plan;
}

}  // namespace kzero
