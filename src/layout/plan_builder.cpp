// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/plan_builder.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/message.hpp"
namespace kzero::detail {
namespace {

// Of all buffers together: the bytes of any one array of the optimizer, at 8
// bytes an element, stay within 2^62.
constexpr std::int64_t maximum_elements = std::int64_t{1} << 59;

constexpr int unplaced = -1;
constexpr int placed_with_other = -2;  // tied: lies where the other one does

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The most that is not above 1.05 * total / ranks, without overflow.
std::int64_t near_mean(std::int64_t total, int ranks) {
  const std::int64_t divisor = std::int64_t{20} * ranks;
  return 21 * (total / divisor) + 21 * (total % divisor) / divisor;
}

}  // namespace

void check_plan_options(const PlanOptions& options) {
  if (options.ranks < 1)
    throw InvalidArgument(concat(
        "PlanOptions::ranks is out of range (expected 1 or more, got ",
        options.ranks, "): give the number of ranks that share the state"));
  if (options.bucket_bytes < 1)
    throw InvalidArgument(concat(
        "PlanOptions::bucket_bytes is out of range (expected 1 or more, got ",
        options.bucket_bytes,
        "): give a number of bytes, or PlanOptions::unlimited"));
  if (options.partition < Partition::elements ||
      options.partition > Partition::buckets)
    throw InvalidArgument(concat(
        "PlanOptions::partition is unknown (expected Partition::elements, "
        "parameters or buckets, got code ",
        static_cast<int>(options.partition), "): use an enumerator"));
  if (options.divide && options.partition != Partition::buckets)
    throw InvalidArgument(concat(
        "PlanOptions::divide goes with Partition::buckets alone (got Partition "
        "code ",
        static_cast<int>(options.partition),
        "): leave it out, or choose Partition::buckets"));
}

int BufferIndex::find_or_add(const ParameterInfo& parameter, int next) {
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

PlanBuilder::PlanBuilder(const ParameterSet& parameters,
                         const PlanOptions& options, const Plan& old)
    : parameters_(parameters.parameters()),
      plan_(old),
      old_parameters_(std::ssize(old.placements_)),
      granularity_(alignment_elements),
      open_(old.buffers_.size()) {
  if (old_parameters_ > parameters.size())
    throw InvalidArgument(concat(
        "there are fewer parameters than in the plan that grows (expected ",
        old_parameters_, " or more, got ", parameters.size(),
        "): give all of them, the new ones last"));
  plan_.ranks_ = options.ranks;
  plan_.partition_ = options.partition;
  plan_.divide_ = options.divide;
  plan_.bucket_bytes_ = options.bucket_bytes;
  plan_.placements_.resize(parameters_.size(), Placement{unplaced, 0, {}});
  if (has_owners())
    plan_.owners_.resize(parameters_.size(), 0);
  else
    granularity_ *= options.ranks;
  for (const Buffer& buffer : old.buffers_) total_ += buffer.size;
}

bool PlanBuilder::placed(ParameterId id) const {
  return plan_.placements_[static_cast<std::size_t>(id.index)].buffer !=
         unplaced;
}

void PlanBuilder::place(ParameterId id) {
  const ParameterInfo& parameter = info(id);
  if (parameter.storage != id) {
    placement(id).buffer = placed_with_other;
    return;
  }
  const int number =
      index_.find_or_add(parameter, static_cast<int>(plan_.buffers_.size()));
  const auto b = static_cast<std::size_t>(number);
  if (b == plan_.buffers_.size()) add_buffer(parameter);
  Buffer& buffer = plan_.buffers_[b];
  OpenBucket& current = open_[b];
  if (!current.open) open_bucket(number, current);

  const std::int64_t begin = round_up(current.end, alignment_elements);
  take(begin - current.end + parameter.size, parameter);
  current.end = begin + parameter.size;
  // The position in layout order holds the bucket's place until finish().
  placement(id) = {.buffer = number,
                   .bucket = position_++,
                   .in_buffer = {begin, current.end}};
  buffer.parameters.push_back(id);

  const std::int64_t bytes =
      (current.end - current.bucket.range.begin) *
      size_of(buffer.frozen ? buffer.dtype : buffer.gradient_dtype);
  if (bytes >= plan_.bucket_bytes_) close_bucket(current);
}

Plan PlanBuilder::finish() {
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
  join_buckets();
  if (has_owners()) cut_by_owner();
  place_tied();
  return std::move(plan_);
}

void PlanBuilder::add_buffer(const ParameterInfo& parameter) {
  plan_.buffers_.push_back({.dtype = parameter.dtype,
                            .gradient_dtype = parameter.gradient_dtype,
                            .chunk = parameter.chunk,
                            .frozen = parameter.frozen,
                            .external = parameter.external != nullptr,
                            .size = 0,
                            .parameters = {}});
  open_.emplace_back();
}

void PlanBuilder::open_bucket(int number, OpenBucket& current) {
  const Buffer& buffer = plan_.buffers_[static_cast<std::size_t>(number)];
  const auto first = static_cast<std::int64_t>(buffer.parameters.size());
  current.bucket = {.buffer = number,
                    .range = {buffer.size, buffer.size},
                    .parameters = {first, first}};
  current.end = buffer.size;
  current.open = true;
}

void PlanBuilder::close_bucket(OpenBucket& current) {
  Bucket& bucket = current.bucket;
  Buffer& buffer = buffer_of(bucket);
  const std::int64_t used = current.end - bucket.range.begin;
  const std::int64_t size = round_up(used, granularity_);
  take(size - used, info(buffer.parameters.back()));
  bucket.range.end = bucket.range.begin + size;
  bucket.parameters.end = static_cast<std::int64_t>(buffer.parameters.size());
  buffer.size = bucket.range.end;
  buckets_.push_back(bucket);
  current.open = false;
}

// Counts elements before they are laid out, so that no sum can overflow.
void PlanBuilder::take(std::int64_t elements, const ParameterInfo& parameter) {
  if (elements > maximum_elements - total_)
    throw InvalidArgument(concat("the parameters do not fit (at parameter ",
                                 quoted(parameter.name),
                                 ", expected at most 2^59 elements of "
                                 "all parameters and padding, got ",
                                 total_, " + ", elements,
                                 "): check the extents and the number of "
                                 "ranks"));
  total_ += elements;
}

std::span<ParameterId> PlanBuilder::parameters_of(const Bucket& bucket) {
  return std::span(buffer_of(bucket).parameters)
      .subspan(static_cast<std::size_t>(bucket.parameters.begin),
               static_cast<std::size_t>(bucket.parameters.size()));
}

std::int64_t PlanBuilder::last_position(const Bucket& bucket) {
  return placement(parameters_of(bucket).back()).bucket;
}

// New buckets that are trained go between the old ones and those of frozen
// parameters, in the order that they have.
void PlanBuilder::join_buckets() {
  std::vector<Bucket>& all = plan_.buckets_;
  const auto frozen = std::stable_partition(
      buckets_.begin(), buckets_.end(),
      [this](const Bucket& bucket) { return !buffer_of(bucket).frozen; });
  const auto old = static_cast<std::size_t>(plan_.trained_buckets_);
  const auto trained = static_cast<std::size_t>(frozen - buckets_.begin());
  all.insert(all.begin() + std::ptrdiff_t(old), buckets_.begin(), frozen);
  all.insert(all.end(), frozen, buckets_.end());
  plan_.trained_buckets_ += std::int64_t(trained);
  for (std::size_t b = old; b < all.size(); ++b)
    for (const ParameterId id : parameters_of(all[b]))
      placement(id).bucket = std::int64_t(b);
  if (!has_owners()) return;
  const auto added = std::span(all).subspan(old, trained);
  give_owners(added);
  for (const Bucket& bucket : added) order_by_owner(bucket);
}

void PlanBuilder::place_tied() {
  for (std::size_t i = 0; i < plan_.placements_.size(); ++i) {
    const auto storage = static_cast<std::size_t>(parameters_[i].storage.index);
    if (storage == i) continue;
    plan_.placements_[i] = plan_.placements_[storage];
    if (has_owners()) plan_.owners_[i] = plan_.owners_[storage];
  }
}

std::vector<std::int64_t> PlanBuilder::old_loads() const {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(plan_.ranks_), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(old_parameters_); ++i) {
    const ParameterInfo& parameter = parameters_[i];
    if (!parameter.frozen && parameter.storage.index == std::int64_t(i))
      loads[static_cast<std::size_t>(plan_.owners_[i])] += parameter.size;
  }
  return loads;
}

// What divide lets a rank have.
std::int64_t PlanBuilder::most_elements() const {
  std::int64_t total = 0;
  std::int64_t largest = 0;
  for (std::int64_t i = 0; const ParameterInfo& parameter : parameters_) {
    if (parameter.storage.index != i++ || parameter.frozen) continue;
    total += parameter.size;
    largest = std::max(largest, parameter.size);
  }
  return std::max(largest, near_mean(total, plan_.ranks_));
}

void PlanBuilder::give_owners(std::span<const Bucket> buckets) {
  const RankLoads old(old_loads());
  std::vector<std::int64_t> sizes;  // without padding
  for (const Bucket& bucket : buckets) {
    sizes.push_back(0);
    for (const ParameterId id : parameters_of(bucket))
      sizes.back() += info(id).size;
  }
  const std::vector<std::size_t> order = largest_first(sizes);
  const std::int64_t most = plan_.divide_ ? most_elements() : total_;
  std::size_t whole = plan_.partition_ == Partition::buckets ? sizes.size() : 0;
  while (true) {
    RankLoads loads = old;
    std::vector<ParameterId> apart;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto ids = parameters_of(buckets[order[i]]);
      if (i >= whole) {
        apart.insert(apart.end(), ids.begin(), ids.end());
        continue;
      }
      const int rank = loads.give(sizes[order[i]]);
      for (const ParameterId id : ids)
        plan_.owners_[static_cast<std::size_t>(id.index)] = rank;
    }
    give_parameters(loads, std::move(apart));
    if (whole == 0 || loads.largest() <= most) return;
    whole /= 2;
  }
}

void PlanBuilder::give_parameters(RankLoads& loads,
                                  std::vector<ParameterId> ids) {
  std::sort(ids.begin(), ids.end());
  std::vector<std::int64_t> sizes;
  for (const ParameterId id : ids) sizes.push_back(info(id).size);
  for (const std::size_t place : largest_first(sizes))
    plan_.owners_[static_cast<std::size_t>(ids[place].index)] =
        loads.give(sizes[place]);
}

// The bucket takes as much room as before: all but its last parameter are
// padded alike, and it is padded too.
void PlanBuilder::order_by_owner(const Bucket& bucket) {
  const auto ids = parameters_of(bucket);
  const auto owner = [this](ParameterId id) {
    return plan_.owners_[static_cast<std::size_t>(id.index)];
  };
  std::stable_sort(ids.begin(), ids.end(), [&](ParameterId a, ParameterId b) {
    return owner(a) < owner(b);
  });
  std::int64_t begin = bucket.range.begin;
  for (const ParameterId id : ids) {
    const std::int64_t end = begin + info(id).size;
    placement(id).in_buffer = {begin, end};
    begin = round_up(end, alignment_elements);
  }
}

void PlanBuilder::cut_by_owner() {
  const auto row = static_cast<std::size_t>(plan_.ranks_) + 1;
  plan_.offsets_.resize(row * plan_.buckets_.size());
  auto offset = plan_.offsets_.begin();
  for (const Bucket& bucket : plan_.buckets_) {
    std::fill_n(offset, row, 0);
    if (buffer_of(bucket).frozen)
      offset[1] = bucket.range.size();
    else
      for (const ParameterId id : parameters_of(bucket))
        offset[1 + plan_.owners_[static_cast<std::size_t>(id.index)]] +=
            round_up(info(id).size, alignment_elements);
    for (std::size_t rank = 1; rank < row; ++rank)
      offset[std::ptrdiff_t(rank)] += offset[std::ptrdiff_t(rank) - 1];
    offset += std::ptrdiff_t(row);
  }
}

}  // namespace kzero::detail
