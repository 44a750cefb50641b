// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What stands behind a ShardedOptimizer.
#pragma once

#include <cstdint>
#include <kzero/sharded_optimizer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "optim/loss_scale.hpp"
#include "optim/tile_table.hpp"
#include "optim/update_classes.hpp"
#include "storage/storage.hpp"

namespace kzero::detail {

/// One bucket as the kernels see it: where it lies and which functions fit its
/// types.
struct BucketWork {
  DType dtype = DType::float32;
  DType gradient_dtype = DType::float32;
  std::int64_t main_bytes = 4;  // of one element
  std::byte* gradients = nullptr;
  std::byte* parameters = nullptr;
  std::byte* averaged = nullptr;  // this rank's shard, like the next three
  std::byte* main = nullptr;
  std::byte* parameter_shard = nullptr;  // null where main is the parameter
  std::array<std::byte*, maximum_state_arrays> state = {};
};

class OptimizerCore {
 public:
  OptimizerCore(std::shared_ptr<Communicator> communicator,
                ParameterSet parameters, OptimizerOptions options,
                const ExecutionSpace& space);

  // The pipeline (step.cpp).
  StepReport step(std::optional<double> loss);
  void mark_ready(ParameterId id, const ExecutionSpace& space);
  void zero_gradients(const ExecutionSpace& space);

  // Parameters by other ways than a step (parameters.cpp). Collective.
  void write_parameters(int root, void (*call)(void*, ParameterWriter&),
                        void* function, ParameterWriter* writer);
  void reload_main();

  /// Throws InvalidArgument when a parameter was marked since the last step.
  void require_unmarked(const char* what) const;

  std::string describe() const;
  Memory memory() const;
  std::size_t group_index(const std::string& name) const;
  std::size_t group_of(std::int64_t parameter) const {
    return static_cast<std::size_t>(
        group_of_[static_cast<std::size_t>(parameter)]);
  }
  const BucketWork& bucket_of(ParameterId id) const {
    return buckets[static_cast<std::size_t>(plan.placement(id).bucket)];
  }
  /// Where a parameter's elements lie in its bucket.
  Range in_bucket(ParameterId id) const;
  std::int32_t bucket_count() const {
    return static_cast<std::int32_t>(plan.buckets().size());
  }
  /// The hyperparameters as the ranks compare them; called when they change.
  void hash_rules();

  // Given, and fixed from construction on but for the rules' hyperparameters.
  std::shared_ptr<Communicator> communicator;
  ParameterSet parameters;
  OptimizerOptions options;
  ExecutionSpace space;
  Plan plan;
  std::vector<std::string> group_names;
  std::vector<Rule> rules;        // by group
  std::vector<Segment> segments;  // of this rank, by parameter
  std::unique_ptr<Storage> storage;
  std::vector<BucketWork> buckets;
  TileTable tiles;

  // What steps change.
  UpdateClasses classes;
  std::int64_t steps = 0;
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;
  LossScaleState loss_scale;

  std::span<const Segment> segments_of(ParameterId id) const;

 private:
  struct Totals {
    double squares = 0.0;
    std::int64_t zeros = 0;
    std::int64_t nonfinite = 0;
  };

  void set_up_plan();
  void set_up_groups();
  void set_up_storage();
  void validate_options() const;

  void zero_unmarked();
  Ticket start_rules_exchange();
  void reduce(bool update_at_once);
  Totals exchange_totals();
  void update_all(double clip);
  void gather();
  void clear_marks();
  bool must_skip(const Totals& totals) const;

  std::vector<std::int32_t> group_of_;       // by parameter
  std::vector<std::int64_t> segment_begin_;  // by parameter, into segments
  std::uint64_t rules_hash_ = 0;
  // The hash of every rank; the communicator's memory, since peers write it.
  std::shared_ptr<void> rules_exchange_;
  std::vector<TileStatistics> statistics_;  // by tile
  std::vector<Totals> exchanged_;           // by rank
  std::vector<std::uint8_t> marked_;        // by parameter
  std::int64_t marked_count_ = 0;
};

}  // namespace kzero::detail
