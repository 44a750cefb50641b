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
#include "optim/marks.hpp"
#include "optim/model_group.hpp"
#include "optim/step_head.hpp"
#include "optim/tile_table.hpp"
#include "optim/totals.hpp"
#include "optim/trust_ratios.hpp"
#include "optim/update_classes.hpp"
#include "storage/storage.hpp"

namespace kzero::detail {

/// One bucket as the kernels see it: where it lies and which functions fit its
/// types.
struct BucketWork {
  DType dtype = DType::float32;
  /// Whose update kernel runs. Of an external bucket the main parameters' own:
  /// their update writes nothing else.
  DType update_dtype = DType::float32;
  DType gradient_dtype = DType::float32;
  std::int64_t main_bytes = 4;  // of one element
  std::byte* gradients = nullptr;
  std::byte* parameters = nullptr;  // null where external
  std::byte* averaged = nullptr;    // this rank's shard, like the next three
  std::byte* main = nullptr;
  /// 16-bit parameters that the update writes; null where it writes none.
  std::byte* parameter_shard = nullptr;
  std::array<std::byte*, maximum_state_arrays> state = {};
};

struct TileWork;

class OptimizerCore {
 public:
  OptimizerCore(std::shared_ptr<Communicator> communicator,
                ParameterSet parameters, OptimizerOptions options,
                const ExecutionSpace& space);
  /// Collective; comes before the constructor. Either every rank of the
  /// communicator has a model-parallel group, or none. Every rank throws
  /// InvalidArgument otherwise, and when any has a problem.
  static void agree_on_groups(const std::shared_ptr<Communicator>& communicator,
                              const ParameterSet& parameters,
                              const OptimizerOptions& options,
                              std::string problem);

  // Its parts refer to one another.
  OptimizerCore(const OptimizerCore&) = delete;
  OptimizerCore& operator=(const OptimizerCore&) = delete;

  // The pipeline (step.cpp).
  StepReport step(std::optional<double> loss);
  void mark_ready(ParameterId id, const ExecutionSpace& space);
  void zero_gradients(const ExecutionSpace& space);

  // Parameters by other ways than a step (parameters.cpp). Collective.
  void write_parameters(int root, void (*call)(void*, ParameterWriter&),
                        void* function, ParameterWriter* writer);
  void reload_main();
  /// Collective. Values of a bucket's elements, root's to all ranks.
  void broadcast_values(std::int64_t bucket, Range range, int root,
                        const char* operation);
  /// Local. Elements [range) of a parameter's value, as main_dtype.
  void read_as_main(ParameterId id, Range range, std::byte* to) const;

  /// Throws InvalidArgument when a parameter was marked since the last step.
  void require_unmarked(const char* what) const { marks_.require_none(what); }

  /// Throws InvalidArgument when the last step has left no averaged gradient;
  /// info is what was asked for.
  void require_averaged(const ParameterInfo& info) const;
  void forget_averaged() { averaged_is_valid_ = false; }
  /// First element of a segment in it.
  std::byte* averaged_gradient(const Segment& segment) const;

  std::int64_t update_count(ParameterId id) const {
    return parameters[id].frozen ? 0 : classes.count(id.index);
  }

  /// Options::nonfinite, with what automatic stands for.
  Nonfinite nonfinite() const;

  /// Hyperparameters may change between steps, and after a step that found them
  /// to differ.
  void require_settable() const {
    if (!disagreed_) require_unmarked("Group::set");
  }

  /// What the sum of the ranks' gradients is divided by, beside the scale.
  double divisor() const {
    return options.reduction.divisor(communicator->size());
  }

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
  /// The leading ones, less those of frozen parameters.
  std::int32_t trained_buckets() const {
    return static_cast<std::int32_t>(plan.trained_buckets());
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
  /// Collective. Every rank of the model throws InvalidArgument when any has a
  /// problem.
  void throw_on_all(const std::string& problem);
  void agree(std::string problem);
  void set_up_plan();
  void set_up_groups();
  void set_up_storage();
  void set_up_steps();
  void validate_options() const;

  void zero_unmarked();
  TileWork tile_work(double scale, double clip);
  void reduce(bool update_at_once);
  /// Collective. Says which hyperparameter of which rank differs.
  [[noreturn]] void throw_disagreement();
  Totals exchange_totals();
  void update_all(double clip);
  void apply_trust_ratios();
  void gather();
  void count_update();
  std::optional<NonfiniteSource> source_of(const Totals& totals) const;
  std::string nonfinite_message(const StepRecord& record) const;

  std::vector<std::int32_t> group_of_;       // by parameter
  std::vector<std::int64_t> segment_begin_;  // by parameter, into segments
  std::uint64_t rules_hash_ = 0;
  ModelGroup model_;
  Marks marks_;
  StepHead head_;
  TrustRatios trust_;
  std::vector<Totals> totals_;  // by tile
  // By rank, and by rank of the model-parallel group.
  std::vector<Totals> exchanged_;
  std::vector<Totals> exchanged_in_model_;
  bool averaged_is_valid_ = false;
  bool disagreed_ = false;  // on hyperparameters, in the last step
};

}  // namespace kzero::detail
