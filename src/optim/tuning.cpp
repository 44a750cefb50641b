// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/tuning.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "core/message.hpp"
#include "core/pieces.hpp"
#include "kernels/kernels.hpp"
#include "optim/setup_facts.hpp"

namespace kzero::detail {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t most_bytes = 64 * mebibyte;
constexpr std::array<std::int64_t, 5> sizes = {
    mebibyte, 4 * mebibyte, 8 * mebibyte, 25 * mebibyte, 64 * mebibyte};
constexpr int rounds = 3;
// Closer than this is chance.
constexpr double about_as_fast = 1.03;
constexpr Subject subject{"tuning"};

}  // namespace

CommunicationTuning::CommunicationTuning(Communicator& communicator,
                                         const Plan& plan)
    : communicator_(communicator), given_bytes_(plan.bucket_bytes()) {
  std::int64_t largest = 0;
  for (const Buffer& buffer : plan.buffers()) {
    if (buffer.frozen) continue;
    const std::int64_t bytes = buffer.size * size_of(buffer.gradient_dtype);
    bytes_ += bytes;
    if (bytes <= largest) continue;
    largest = bytes;
    dtype_ = buffer.gradient_dtype;
  }
  if (communicator.size() == 1) bytes_ = 0;
  bytes_ = std::min(bytes_, most_bytes);
  gradients_ = communicator.allocate(bytes_);
  std::memset(gradients_.get(), 0, static_cast<std::size_t>(bytes_));
  // The largest shard, of the sum's type.
  averaged_.resize(
      static_cast<std::size_t>(bytes_ / size_of(dtype_) / communicator.size() *
                               size_of(main_dtype(dtype_))));
}

// Collective.
bool CommunicationTuning::can_add_up() const {
  std::int64_t values[] = {communicator_.sharing().ranks,
                           -communicator_.sharing().ranks};
  communicator_.all_reduce(values, Extremum::maximum, subject);
  return values[0] > 1 && -values[1] < communicator_.size();
}

std::vector<CommunicationTuning::Candidate> CommunicationTuning::candidates()
    const {
  std::vector<std::int64_t> tried(sizes.begin(), sizes.end());
  tried.push_back(given_bytes_);
  // No bucket is larger than all gradients.
  for (std::int64_t& each : tried) each = std::min(each, bytes_);
  std::sort(tried.begin(), tried.end());
  tried.erase(std::unique(tried.begin(), tried.end()), tried.end());
  std::vector<Candidate> all;
  const bool has_choice = can_add_up();
  for (const std::int64_t each : tried) {
    all.push_back({each, true});
    if (has_choice) all.push_back({each, false});
  }
  return all;
}

// All reductions first, then bucket by bucket.
void CommunicationTuning::exchange(const Candidate& candidate) {
  const std::int64_t element = size_of(dtype_);
  const int ranks = communicator_.size();
  const std::int64_t shard = std::max<std::int64_t>(
      1, std::min(candidate.bucket_bytes, bytes_) / element / ranks);
  const std::int64_t buckets = bytes_ / (shard * ranks * element);
  auto* const first = static_cast<std::byte*>(gradients_.get());
  const ShardTable shards = ShardTable::uniform(ranks, shard);
  std::vector<ReductionTicket> reductions;
  std::vector<Ticket> gathers;
  for (std::int64_t b = 0; b < buckets; ++b) {
    reductions.push_back(communicator_.start_reduce(
        {first + b * shard * ranks * element, dtype_, shards,
         candidate.bucket_bytes, tile_elements,
         candidate.adds_up ? ordered_sum : nullptr, -1}));
  }
  for (std::int64_t b = 0; b < buckets; ++b) {
    const auto i = static_cast<std::size_t>(b);
    while (const Contributions* piece = reductions[i]->next())
      ordered_sum(
          piece->parts, piece->dtype, piece->range.size(),
          averaged_.data() + piece->range.begin * size_of(main_dtype(dtype_)));
  }
  for (std::int64_t b = 0; b < buckets; ++b) {
    const auto i = static_cast<std::size_t>(b);
    reductions[i]->wait();
    gathers.push_back(communicator_.start_all_gather(
        {first + b * shard * ranks * element, dtype_, shards, -1}));
  }
  for (const Ticket& gather : gathers) gather->wait();
}

void CommunicationTuning::measure(Candidate& candidate) {
  using Clock = std::chrono::steady_clock;
  std::array<std::int64_t, rounds> times{};
  exchange(candidate);  // what is first used then is there
  for (std::int64_t& time : times) {
    communicator_.barrier(subject);
    const auto begin = Clock::now();
    exchange(candidate);
    time = std::chrono::nanoseconds(Clock::now() - begin).count();
  }
  communicator_.all_reduce(times, Extremum::maximum, subject);
  std::sort(times.begin(), times.end());
  candidate.seconds = static_cast<double>(times[rounds / 2]) * 1e-9;
}

CommunicationChoice CommunicationTuning::run() {
  CommunicationChoice choice;
  choice.bucket_bytes = given_bytes_;
  if (bytes_ == 0) {
    choice.words = "nothing to tune";
    return choice;
  }
  std::vector<Candidate> all = candidates();
  for (Candidate& each : all) measure(each);
  double least = all.front().seconds;
  for (const Candidate& each : all) least = std::min(least, each.seconds);
  const auto distance = [&](const Candidate& each) {
    return std::abs(std::log2(static_cast<double>(each.bucket_bytes) /
                              static_cast<double>(given_bytes_)));
  };
  const Candidate* best = nullptr;
  for (const Candidate& each : all) {
    if (each.seconds > least * about_as_fast) continue;
    if (best == nullptr || distance(each) < distance(*best)) best = &each;
  }
  choice.bucket_bytes = best->bucket_bytes == bytes_
                            ? std::max(given_bytes_, bytes_)
                            : best->bucket_bytes;
  choice.adds_up = best->adds_up;
  choice.words = concat("buckets of ", bytes(choice.bucket_bytes),
                        choice.adds_up ? ""
                                       : ", nothing added up for other "
                                         "nodes",
                        " (");
  for (const Candidate& each : all)
    choice.words +=
        concat(&each == &all.front() ? "" : ", ", bytes(each.bucket_bytes),
               each.adds_up ? "" : " not added up", ": ",
               static_cast<std::int64_t>(each.seconds * 1e6), " us");
  choice.words += ")";
  return choice;
}

}  // namespace kzero::detail
