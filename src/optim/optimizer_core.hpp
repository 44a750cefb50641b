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
#include "optim/join_channel.hpp"
#include "optim/kept_exchange.hpp"
#include "optim/loss_scale.hpp"
#include "optim/marks.hpp"
#include "optim/matrix_updates.hpp"
#include "optim/model_group.hpp"
#include "optim/pending_call.hpp"
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
  static constexpr Subject set_up{"optimizer set-up"};

  OptimizerCore(std::shared_ptr<Communicator> communicator,
                ParameterSet parameters, OptimizerOptions options,
                const ExecutionSpace& space);
  /// Collective. Compares what the ranks were given, whether each has a
  /// model-parallel group, and what that group was given; model: of the group,
  /// where there is one. Every rank of the model throws InvalidArgument when
  /// any has a problem.
  static void agree(Communicator& communicator, Subject subject,
                    const ParameterSet& parameters,
                    const OptimizerOptions& options, std::string problem,
                    ModelGroup& model);

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

  // In a join (join.cpp and step.cpp).
  void join(std::shared_ptr<JoinChannel> channel, std::int64_t seat) {
    join_ = std::move(channel);
    seat_ = seat;
  }
  void leave_join() { join_ = nullptr; }
  bool joined() const { return join_ != nullptr; }
  /// Takes part in a step of other ranks, with gradients of zero.
  void shadow_step(const JoinRound& round);

  /// Goes on with all gathers, where there is no thread. Nothing is added up:
  /// who takes part in this step is not known yet. False when none is under
  /// way.
  bool advance_gathers();

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
  /// Of the parameters from first on.
  void reload_main(ParameterId first = {0});
  /// Collective (add_group.cpp). The new parameters, in a group of their own.
  std::vector<ParameterId> add_group(const std::string& group,
                                     const ParameterSet& added,
                                     const Rule& rule);
  /// Collective (rebuild.cpp). Lays buckets out in the order in which rank 0
  /// has marked.
  void rebuild_buckets();
  std::span<const ParameterId> readiness_order() const {
    return marks_.last_order();
  }
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
    return options.reduction.divisor(divided_by_ > 0 ? divided_by_
                                                     : communicator->size());
  }

  std::string describe() const;
  std::string parameter_sharing() const;
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

  /// The last one; steps end it.
  std::shared_ptr<PendingCall> pending_call;

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
  void throw_on_all(Subject subject, const std::string& problem);
  void set_up_plan();
  void tune();
  /// Where this rank's segments of each parameter lie, from segments.
  void index_segments();
  bool permits_a_thread() const;
  void set_up_progress();
  void set_up_groups();
  /// Of the buffers from first on.
  std::unique_ptr<Storage> make_storage(const Plan& plan,
                                        const ParameterSet& parameters,
                                        std::span<const std::int32_t> group_of,
                                        std::span<const Rule> rules,
                                        std::size_t first = 0) const;
  MatrixUpdates make_matrices(const Plan& plan, const ParameterSet& parameters,
                              std::span<const std::int32_t> group_of,
                              std::span<const Rule> rules) const;
  void set_up_storage();
  /// What kernels and transfers see of the storage.
  void set_up_buckets();
  void set_up_steps();
  /// What steps need of the parameters, collective over the model; and of the
  /// plan, local. Again when those have changed.
  void set_up_parameters();
  void set_up_pipeline();
  /// All marked ones of rank 0 in their order, then all others in the plan's.
  /// Collective.
  std::vector<ParameterId> observed_order();
  void move_values(const Plan& from_plan, std::span<const BucketWork> from);
  void move_state(const Plan& from_plan, std::span<const BucketWork> from,
                  const Storage& from_storage, std::byte* whole);
  void validate_options() const;
  void require_no_decision() const;
  void require_no_trust_ratio(std::span<const std::string> names,
                              std::span<const Rule> rules) const;
  struct Growth;
  void require_new_group(const std::string& group,
                         const ParameterSet& added) const;
  void grow_groups(Growth& growth) const;
  void grow_plan(Growth& growth) const;
  void take(Growth& growth);

  void fetch_gradient(ParameterId id, const ExecutionSpace& on);
  void fetch_unmarked();
  bool agreed() const { return rules_agreement_.agreed() && !refused_; }
  void zero_unmarked();
  TileWork tile_work(double scale, double clip);
  bool overlaps_backward() const {
    return options.schedule != Schedule::at_step;
  }
  bool interleaved() const { return options.schedule == Schedule::interleaved; }
  /// Whether what is not finite can leave parameters as they are.
  bool may_skip() const {
    const auto action = nonfinite().action();
    return action == Nonfinite::Action::skip ||
           action == Nonfinite::Action::throw_after;
  }
  /// Whether the update needs the whole gradient.
  bool decides_first() const { return options.clip_norm || may_skip(); }
  /// Whether a bucket is gathered when it is updated, and not when all are.
  bool gathers_by_bucket() const {
    return interleaved() || (options.gather == GatherMode::at_step &&
                             !decides_first() && !trust_.any());
  }
  bool overlaps() const {
    return overlaps_backward() || options.gather != GatherMode::at_step;
  }
  /// One pass over the transfers, without a wait.
  Advance advance(const Hands& hands);
  /// Such passes by the caller, where there is no thread.
  void advance_here();
  /// Adds up what has arrived; update: the tiles too.
  void sum(const Arrival& arrival, const Hands& hands, bool update);
  bool can_sum_early();
  /// What the ranks of a join do in this step. Throws InvalidArgument on every
  /// rank, with nothing changed, when they do not go together.
  JoinRound join_round();
  void begin_round(const JoinRound& round);
  StepReport step_in_round(std::optional<double> loss, const JoinRound& round);
  [[noreturn]] void throw_uneven(const JoinRound& round);
  bool reduce();
  /// What is left to do for buckets that have come, where nothing has to be
  /// decided first.
  void finish_buckets(const Hands& hands);
  void update_tiles(Range tiles, double clip, const Hands& hands);
  void update_all(double clip);
  void start_reductions(std::int64_t count);
  /// Forgets what was reduced of a step, and what was marked.
  void forget_reductions();
  void forget_step();
  void begin_gathers();
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
  /// The first parameter whose gradient of this rank was not finite, in what
  /// other ranks have added up.
  Culprit own_culprit() const;
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
  MatrixUpdates matrices_;
  std::vector<Totals> totals_;  // by tile
  // By rank, and by rank of the model-parallel group.
  std::vector<Totals> exchanged_;
  std::vector<Culprit> culprits_;
  std::vector<Totals> exchanged_in_model_;
  bool averaged_is_valid_ = false;
  bool disagreed_ = false;  // on hyperparameters, in the last step
  std::shared_ptr<JoinChannel> join_;
  std::int64_t seat_ = 0;              // in it
  bool shadow_ = false;                // in this step
  bool refused_ = false;               // this step, by all ranks
  int divided_by_ = 0;                 // ranks in this step; 0: all
  std::vector<double> shared_values_;  // hyperparameters of all groups
  Readiness readiness_;
  Reductions reductions_;
  std::unique_ptr<Gathers> gathers_;
  // Leading buckets that may go out before step().
  std::atomic<std::int64_t> released_ = 0;
  // In this step: leading tiles that are added up and not updated; whether the
  // gathers are this one's; buckets that are finished; whether the update is
  // prepared.
  std::int64_t summed_tiles_ = 0;
  bool gathers_begun_ = false;
  std::int64_t finished_buckets_ = 0;
  bool prepared_ = false;
  bool threaded_ = false;
  bool ended_ = false;           // transfers, with MPI or with this optimizer
  std::string failure_;          // of a transfer, which ended this optimizer
  std::string progress_choice_;  // for people
  bool adds_up_ = true;          // before anything goes to another node
  std::string tuned_;            // for people; empty where nothing was
  std::array<double, phases> seconds_ = {};
  double exchange_waited_ = 0.0;
  // By the communicators of reductions and of gathers, when it was last taken.
  std::array<std::int64_t, 2> sent_ = {};
  std::int64_t sent_in_vain_ = 0;    // in steps that threw, since the last one
  std::int64_t calls_ = 0;           // of step()
  mutable ProgressThread progress_;  // last: it works on the others
};

}  // namespace kzero::detail
