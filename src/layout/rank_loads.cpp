// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/rank_loads.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace kzero::detail {

RankLoads::RankLoads(std::span<const std::int64_t> loads) {
  for (int rank = 0; const std::int64_t load : loads) {
    heap_.emplace_back(load, rank++);
    largest_ = std::max(largest_, load);
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

int RankLoads::give(std::int64_t elements) {
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  auto& [load, rank] = heap_.back();
  const int taker = rank;
  load += elements;
  largest_ = std::max(largest_, load);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  return taker;
}

std::vector<std::size_t> largest_first(std::span<const std::int64_t> sizes) {
  std::vector<std::size_t> places(sizes.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(
      places.begin(), places.end(),
      [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  return places;
}

}  // namespace kzero::detail
