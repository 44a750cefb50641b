// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The pass over a shard as the optimizer makes it, by itself: its plan, memory,
// tiles and kernels, without messages. One rank.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/parameter_set.hpp>
#include <kzero/rule.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "optim/bucket_work.hpp"
#include "optim/hands.hpp"
#include "optim/marks.hpp"
#include "optim/tile_table.hpp"
#include "optim/tile_work.hpp"
#include "storage/storage.hpp"

namespace kzero::bench {

/// Who makes a pass: the calling thread, or the threads of Kokkos.
enum class Workers { one, all };

/// The threads of Kokkos.
int kokkos_threads();

/// What a pass is made by, where there is a choice.
std::vector<Workers> all_workers();
std::string name_of(Workers workers);

/// Seconds of a call: of one thread its processor's, so that the turns of other
/// programs do not count.
double seconds_of(Workers workers, const std::function<void()>& call);

class ShardPass {
 public:
  /// AdamW for all parameters, which have one type; gradients as if from one
  /// rank. Everything is filled with normal numbers.
  explicit ShardPass(ParameterSet model);
  /// In the memory of another pass, which has as many elements with padding:
  /// where arrays lie matters to the speed of memory.
  ShardPass(ParameterSet model, const ShardPass& memory);

  /// One parameter.
  static ParameterSet flat_model(DType dtype, std::int64_t elements);

  // The passes.
  void sum(Workers workers);
  void update(Workers workers, double clip = 1.0);
  /// Both, tile by tile: where nothing has to be decided in between.
  void sum_and_update(Workers workers);
  /// What update() reads and writes, without arithmetic.
  void probe(Workers workers);

  /// Calls f(bucket, first element, count) for each tile.
  template <class F>
  void for_each_tile(Workers workers, const F& f) {
    hands(workers).for_each(
        "kzero::bench", 0, std::ssize(tiles_.tiles()), [&](std::int64_t i) {
          const auto& tile = tiles_.tiles()[static_cast<std::size_t>(i)];
          f(buckets_[static_cast<std::size_t>(tile.bucket)],
            tile.in_shard.begin, tile.in_shard.size());
        });
  }

  std::span<const detail::BucketWork> buckets() const { return buckets_; }
  std::int64_t elements_of(std::size_t bucket) const;
  void fill_gradients(double value);
  void fill_moments(double value);

 private:
  detail::Hands hands(Workers workers) const;
  detail::TileWork work(double clip);
  void prepare();
  void fill();

  const ExecutionSpace space_{};
  ParameterSet model_;
  std::shared_ptr<Communicator> communicator_;
  Plan plan_;
  std::vector<Rule> rules_;
  std::shared_ptr<detail::Storage> storage_;
  std::vector<detail::BucketWork> buckets_;
  detail::TileTable tiles_;
  detail::UpdateClasses classes_;
  detail::Marks marks_;
  detail::TrustRatios trust_;
  std::vector<std::uint8_t> counted_;
  std::vector<detail::Totals> totals_;
};

}  // namespace kzero::bench
