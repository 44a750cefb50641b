// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What stands behind a ShardedOptimizer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <kzero/error.hpp>
#include <kzero/sharded_optimizer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "optim/bucket_work.hpp"
#include "optim/gathers.hpp"
#include "optim/kept_exchange.hpp"
#include "optim/loss_scale.hpp"
#include "optim/marks.hpp"
#include "optim/model_group.hpp"
#include "optim/progress.hpp"
#include "optim/readiness.hpp"
#include "optim/reductions.hpp"
#include "optim/rules_agreement.hpp"
#include "optim/tile_table.hpp"
#include "optim/totals.hpp"
#include "optim/trust_ratios.hpp"
#include "optim/update_classes.hpp"
#include "storage/storage.hpp"

namespace kzero::detail {

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

  /// Runs a call that uses transfers. When it fails half-way, this call and all
  /// later ones throw: what peers have sent is no longer known.
  template <class F>
  decltype(auto) run(F&& call) {
    require_usable();
    try {
      return call();
    } catch (const InvalidArgument&) {
      throw;
    } catch (const NonfiniteError&) {
      throw;
    } catch (const std::exception& error) {
      fail(error.what());
      throw;
    }
  }
  /// From now on every call that uses transfers throws.
  void fail(std::string_view why) { failure_ = why; }

  // The pipeline (ready.cpp and step.cpp).
  StepReport step(std::optional<double> loss);
  void mark_ready(ParameterId id, const ExecutionSpace& space);
  void zero_gradients(const ExecutionSpace& space);

  // Waits for gathers that step() has left under way (waits.cpp).
  void wait_for_parameter(ParameterId id);
  void wait_for_all_parameters();
  void finish_gather(int chunk);

  // The end (left_gathers.cpp). The caller is gone, and so may be its views.
  /// Drops reductions and ends the thread; gathers can go on. False when there
  /// are none.
  bool end_transfers() noexcept;
  /// Likewise, and nothing goes to the caller's memory any more.
  bool leave_gathers() noexcept;
  /// Gathers go on, without a wait. False when they have ended.
  bool advance_left_gathers();

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
  // Where transfers overlap, duplicates: which of two is started first can
  // differ between ranks. Else the same.
  std::shared_ptr<Communicator> reduce_communicator;
  std::shared_ptr<Communicator> gather_communicator;
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
  void require_usable() const;
  void require_mpi(const char* what) const;
  /// Collective. Every rank of the model throws InvalidArgument when any has a
  /// problem.
  void throw_on_all(const std::string& problem);
  void agree(std::string problem);
  void set_up_plan();
  bool permits_a_thread() const;
  void set_up_progress();
  void set_up_groups();
  void set_up_storage();
  void set_up_steps();
  void validate_options() const;

  void fetch_gradient(ParameterId id, const ExecutionSpace& on);
  void fetch_unmarked();
  void zero_unmarked();
  TileWork tile_work(double scale, double clip);
  bool overlaps_backward() const {
    return options.schedule != Schedule::at_step;
  }
  bool overlaps() const {
    return overlaps_backward() || options.gather != GatherMode::at_step;
  }
  /// One pass over the transfers, without a wait.
  Advance advance(const Hands& hands);
  /// Passes by the caller, where there is no thread.
  void advance_here();
  void sum(const Arrival& arrival, const Hands& hands, bool update_at_once);
  bool reduce(bool update_at_once);
  void update_tiles(std::int64_t begin, std::int64_t end, double clip);
  void start_reductions(std::int64_t count);
  /// Forgets what was reduced of a step, and what was marked.
  void forget_reductions();
  void forget_step();
  void gather();
  double& seconds(Phase phase) {
    return seconds_[static_cast<std::size_t>(phase)];
  }
  void take_times(StepRecord& record);
  std::int64_t take_bytes_sent();
  void forget_bytes_of_others();
  /// Collective. Says which hyperparameter of which rank differs.
  [[noreturn]] void throw_disagreement();
  Totals exchange_totals();
  void apply_trust_ratios();
  void count_update();
  std::optional<NonfiniteSource> source_of(const Totals& totals) const;
  std::string nonfinite_message(const StepRecord& record) const;

  std::vector<std::int32_t> group_of_;       // by parameter
  std::vector<std::int64_t> segment_begin_;  // by parameter, into segments
  std::uint64_t rules_hash_ = 0;
  ModelGroup model_;
  Marks marks_;
  RulesAgreement rules_agreement_;
  KeptExchange kept_exchange_;
  TrustRatios trust_;
  std::vector<Totals> totals_;  // by tile
  // By rank, and by rank of the model-parallel group.
  std::vector<Totals> exchanged_;
  std::vector<Totals> exchanged_in_model_;
  bool averaged_is_valid_ = false;
  bool disagreed_ = false;  // on hyperparameters, in the last step
  Readiness readiness_;
  Reductions reductions_;
  std::unique_ptr<Gathers> gathers_;
  // Leading buckets that may go out before step().
  std::atomic<std::int64_t> released_ = 0;
  std::int64_t summed_tiles_ = 0;  // leading ones, in this step
  bool threaded_ = false;
  bool ended_ = false;           // transfers, with MPI or with this optimizer
  std::string failure_;          // of a transfer, which ended this optimizer
  std::string progress_choice_;  // for people
  std::array<double, phases> seconds_ = {};
  double exchange_waited_ = 0.0;
  // By the communicators of reductions and of gathers, when it was last taken.
  std::array<std::int64_t, 2> sent_ = {};
  std::int64_t sent_in_vain_ = 0;    // in steps that threw, since the last one
  std::int64_t calls_ = 0;           // of step()
  mutable ProgressThread progress_;  // last: it works on the others
};

}  // namespace kzero::detail
