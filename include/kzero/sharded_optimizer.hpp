// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The optimizer of a data-parallel job, its state sharded over the ranks:
// gradients -> bucket -> reduce-scatter -> update of the shard -> all-gather ->
// parameters.
#pragma once

#include <Kokkos_Core.hpp>
#include <concepts>
#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/load_options.hpp>
#include <kzero/memory.hpp>
#include <kzero/optimizer_options.hpp>
#include <kzero/optimizer_state.hpp>
#include <kzero/parameter_set.hpp>
#include <kzero/parameter_view.hpp>
#include <kzero/plan.hpp>
#include <kzero/step_report.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kzero {

class ParameterWriter;

/// The loss scale where kernels read it.
using LossScaleView =
    Kokkos::View<const double, typename ExecutionSpace::memory_space,
                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// Hyperparameters of one group, to be read and changed between steps, on
/// every rank alike. Valid as long as its optimizer.
class Group {
 public:
  const std::string& name() const;
  std::string_view rule() const;  // "adamw", "sgd"
  double get(std::string_view hyperparameter) const;
  /// Local. Throws as Rule::set does, and between a mark and step(), unless the
  /// last step() has found that ranks differ.
  /// Ranks that have set different values find out in the next step(), which
  /// changes nothing and throws InvalidArgument on all of them.
  void set(std::string_view hyperparameter, double value);

 private:
  friend class ShardedOptimizer;
  Group(detail::OptimizerCore& core, std::size_t index)
      : core_(&core), index_(index) {}

  detail::OptimizerCore* core_;
  std::size_t index_;
};

/// Parameters start as zeros, those in the caller's own memory with the values
/// that each rank has there: broadcast_parameters makes them equal. Views of
/// parameters and gradients stay valid as long as the optimizer, or until
/// rebuild_buckets() is called, and are
/// written and read between steps as the caller likes (with
/// GatherMode::overlapped, those of parameters after parameter() or
/// wait_parameters() has been called since the step); but what is written to a
/// 16-bit parameter, or to one in the caller's memory, does not reach its main
/// parameter: use write_parameters, broadcast_parameters or
/// reload_main_from_parameters.
///
/// One thread at a time calls it. Every call may throw CommunicationError where
/// transfers overlap (OptimizerOptions::schedule and gather). Its end waits for
/// no other rank: gathers that are under way then go on when another optimizer
/// is made or steps, and end in MPI_Finalize at the latest, and so long its
/// memory is kept; reductions are dropped. MPI_Finalize ends what is under way
/// of an optimizer that is still alive (one with a thread of its own must be
/// gone before, as MPI demands, where kzero is a shared library that MPI comes
/// before, or where a profiling tool has an MPI_Finalize of its own). After
/// InvalidArgument the optimizer is as it was, where nothing else is said;
/// after a NonfiniteError as that says; after any other exception
/// (CommunicationError, no memory) it is unusable. One that was moved from
/// throws InvalidArgument.
class ShardedOptimizer {
 public:
  /// Collective. The state lies in the memory space of ExecutionSpace, and the
  /// library's kernels run on the given instance. Values in the caller's memory
  /// are read after the work submitted to it.
  /// Throws InvalidArgument on every rank when the ranks' parameters, options
  /// or library versions differ (naming the first difference), when Kokkos is
  /// not initialised, for a null communicator and options out of range; and
  /// when the ranks of the model-parallel group give parameters or options that
  /// do not go together.
  ShardedOptimizer(std::shared_ptr<Communicator> communicator,
                   ParameterSet parameters, OptimizerOptions options,
                   const ExecutionSpace& space);
  /// On the default instance.
  ShardedOptimizer(std::shared_ptr<Communicator> communicator,
                   ParameterSet parameters, OptimizerOptions options = {});
  ~ShardedOptimizer();
  ShardedOptimizer(ShardedOptimizer&&) noexcept;
  ShardedOptimizer& operator=(ShardedOptimizer&&) noexcept;

  /// The parameter as View<D, LayoutRight, memory space, Unmanaged>. D is the
  /// type with one * an extent (const float**), or with a single * for all
  /// elements in C order. Waits for the gather of its bucket, if that is under
  /// way, and lets the next one start; the instance is that of the work that
  /// reads or writes it. Local, but see Progress::calls.
  /// Throws InvalidArgument for a type, rank or static extent that is not the
  /// parameter's, for one in the caller's memory that does not lie in C order
  /// without gaps (that has a view already), and for a D that is not const with
  /// OptimizerOptions::share_parameters.
  template <class D>
  ParameterView<D> parameter(ParameterId id,
                             const ExecutionSpace& space = ExecutionSpace()) {
    using Value = typename ParameterView<D>::non_const_value_type;
    constexpr bool is_const =
        std::is_const_v<typename ParameterView<D>::value_type>;
    return detail::make_view<D>(parameter_reference(
        id, dtype_of<Value>, space, is_const ? Use::read : Use::write));
  }

  /// The gradient's accumulation buffer, the same kind of view. It holds this
  /// rank's own sum over micro-batches until step(); afterwards its content is
  /// unspecified: zero_gradients() or assign. It starts as zeros.
  template <class D>
  ParameterView<D> gradient(ParameterId id,
                            const ExecutionSpace& space = ExecutionSpace()) {
    using Value = typename ParameterView<D>::non_const_value_type;
    return detail::make_view<D>(gradient_reference(id, dtype_of<Value>, space));
  }

  /// Waits as parameter() does: for one in the caller's own memory, which is
  /// read and written there. Local, but see Progress::calls.
  void wait_parameter(ParameterId id,
                      const ExecutionSpace& space = ExecutionSpace());

  /// Waits for all gathers under way. Afterwards every view of a parameter has
  /// the values of the last step. Local, but see Progress::calls.
  void wait_parameters(const ExecutionSpace& space = ExecutionSpace());

  /// Likewise for the parameters of one chunk (ParameterOptions::chunk) and of
  /// those below; the gather of the next chunk starts. Throws InvalidArgument
  /// when no parameter is in the chunk.
  void finish_gather(int chunk, const ExecutionSpace& space = ExecutionSpace());

  /// Calls f(parameter view, gradient view), both of one extent, with the
  /// parameter's run-time types. f must accept every combination. The gradient
  /// of a frozen parameter is a view of no elements. Waits and throws as
  /// parameter() does, for views to write to.
  template <class F>
  void visit(ParameterId id, F&& f) {
    visit_dtype(parameters()[id].dtype, [&](auto value) {
      visit_dtype(parameters()[id].gradient_dtype, [&](auto slope) {
        using Slope = typename decltype(slope)::type;
        f(parameter<typename decltype(value)::type*>(id),
          parameters()[id].frozen ? ParameterView<Slope*>()
                                  : gradient<Slope*>(id));
      });
    });
  }

  /// Collective. On root, f(ParameterWriter&) fills parameters; every rank
  /// receives all of them, main parameters too. An exception of f on root
  /// becomes an InvalidArgument on every rank, root included, with its message;
  /// all ranks then have what f has written until it threw. Every rank throws
  /// InvalidArgument, with nothing changed, for a root that is no rank, for
  /// roots that differ, and when any rank is between a mark and step().
  template <std::invocable<ParameterWriter&> F>
  void write_parameters(int root, F&& f);

  /// Collective. Likewise, from root's views as they are.
  void broadcast_parameters(int root = 0);

  /// Main parameters of 16-bit parameters, and of those in the caller's memory,
  /// from the parameters. Waits for all gathers under way: local, but see
  /// Progress::calls. Throws InvalidArgument between a mark and step().
  void reload_main_from_parameters();

  /// Local. Those in the caller's memory too. Throws InvalidArgument between a
  /// mark and step().
  void zero_gradients(const ExecutionSpace& space = ExecutionSpace());

  /// Says that this rank's gradient is complete once the work submitted to the
  /// instance so far is. Then this rank touches neither the parameter nor its
  /// gradient until step() returns. Where Schedule::after_backward is chosen,
  /// buckets that are complete go out. Local; in any order on any rank. A rank
  /// that marks nothing has all marked by step(); one that has marked a
  /// parameter counts those unmarked as zero, or keeps them
  /// (ParameterOptions::unmarked). Marking twice or a frozen parameter throws.
  void mark_ready(ParameterId id,
                  const ExecutionSpace& space = ExecutionSpace());

  /// Collective. Averages the gradients over the ranks, updates this rank's
  /// shard and gathers the parameters, or with GatherMode::overlapped begins
  /// to. Waits for the work on the optimizer's
  /// own instance: gradients written on another one are marked, or fenced by
  /// the caller.
  /// Throws NonfiniteError as Nonfinite::throw_after says, with parameters and
  /// state of the last good step; InvalidArgument when the ranks have set
  /// different hyperparameters: parameters, state and marked gradients are
  /// unchanged, and step() can be called again.
  StepReport step();

  /// Collective. Calls closure, which computes gradients and returns this
  /// rank's loss (for the report, not scaled), then steps. An exception of
  /// closure leaves parameters and state as they were, and the other ranks in
  /// step().
  template <std::invocable Closure>
  requires std::convertible_to < std::invoke_result_t<Closure>,
  double > StepReport step(Closure&& closure) {
    const double loss = static_cast<double>(std::forward<Closure>(closure)());
    return step_with_loss(loss);
  }

  /// Collective, between steps. Adds parameters in a group of their own, which
  /// rule updates; they are declared in it or in none. Returns their ids. They
  /// start as those given to
  /// the constructor do, with an update count of 0. Views, state and counts of
  /// all others stay as they are (spans of segments() and references into
  /// parameters() and plan() do not); new buckets come behind the old ones
  /// (rebuild_buckets puts all in one order). With a model-parallel group every
  /// rank of the model calls it, maybe with an empty set.
  /// Throws InvalidArgument on every rank, with nothing changed, when the
  /// ranks' arguments differ, a name is taken, there is such a group already,
  /// the options do not go with the rule, any rank is between a mark and
  /// step(), or has no memory for it.
  std::vector<ParameterId> add_group(const std::string& group,
                                     const ParameterSet& parameters,
                                     const Rule& rule);

  /// The parameters in the order in which this rank marked them in the last
  /// step in which it marked any; of names tied to one storage each. Local.
  std::vector<ParameterId> readiness_order() const;

  /// Collective, between steps. Lays the buckets out anew, in the order in
  /// which rank 0 marked the parameters last: what is ready first goes out
  /// first. What rank 0 did not mark comes behind. Parameters, gradients, state
  /// and counts move along and keep their bits; every view and segment of
  /// before is invalid, except those in the caller's own memory. Takes the
  /// memory of the new buckets beside the old ones, and moves one array of one
  /// bucket at a time. Throws InvalidArgument on every rank, with nothing
  /// changed, when rank 0 has marked nothing so far, any rank is between a mark
  /// and step(), or has no memory for it.
  void rebuild_buckets();

  /// What the caller multiplies its loss by. Changes in step() only.
  double loss_scale() const;

  /// The same number in the memory of the kernels, so that reading it there
  /// waits for nothing. Valid as long as the optimizer.
  LossScaleView device_loss_scale() const;

  /// The averaged, unscaled, not clipped gradient of the last step, element k
  /// that of segments(id)[k]. T is double for a float64 parameter, else float.
  /// Valid until gradients are written or zeroed. Zeros for a parameter that
  /// was kept (Unmarked::keep). Local. Throws InvalidArgument when there is
  /// none: before the first step, after zero_gradients() or a mark, after a
  /// skipped step or a load, and for a frozen parameter.
  template <class T>
  std::vector<ParameterView<const T*>> averaged_gradient(ParameterId id) {
    std::vector<ParameterView<const T*>> views;
    for (const Segment& segment : averaged_segments(id, dtype_of<T>))
      views.push_back(
          detail::make_view<const T*>(averaged_reference(id, segment)));
    return views;
  }

  /// Throws InvalidArgument for a name that neither a parameter nor
  /// OptimizerOptions::groups uses.
  Group group(const std::string& name);

  /// How often this parameter has been updated.
  std::int64_t update_count(ParameterId id) const;

  /// Steps that were not skipped.
  std::int64_t steps() const;

  /// Collective. All parameters and their state, hyperparameters, counts and
  /// the loss scaler's state: what save_checkpoint writes, in the memory of
  /// rank root. Empty on the other ranks. Beside the state, root takes memory
  /// for one array of one bucket, the others take none. Throws InvalidArgument
  /// on every rank for a root that is no rank, for roots that differ, and when
  /// any rank is between a mark and step(); CheckpointError on every rank when
  /// root has no memory. Nothing is changed, and training can go on.
  std::optional<OptimizerState> consolidate(int root);

  /// Collective. Restores root's state on any number of ranks with any buckets,
  /// as load_checkpoint does from a file: the same options, of root; the same
  /// warnings, which root logs; and no averaged_gradient() until the next
  /// step(). What the other ranks give is not looked at. Root takes memory for
  /// one array of one bucket, every rank for its shard of one.
  /// Throws InvalidArgument on every rank for what consolidate() refuses, for a
  /// state that is damaged or that the model and the options do not allow, and
  /// where root has none; CheckpointError on every rank when one has no memory.
  /// Nothing is changed then.
  void load_state(const OptimizerState& state, int root,
                  const LoadOptions& options = {});

  /// Likewise, with the state on root alone: what consolidate() has returned,
  /// std::nullopt elsewhere.
  void load_state(const std::optional<OptimizerState>& state, int root,
                  const LoadOptions& options = {});

  /// What this rank owns of a parameter: no, one or (other partitions) more
  /// segments.
  std::span<const Segment> segments(ParameterId id) const;

  const ParameterSet& parameters() const;
  const OptimizerOptions& options() const;
  const Plan& plan() const;
  const std::shared_ptr<Communicator>& communicator() const;

  /// Options, buckets, communicator and kernels in use, for people.
  std::string describe() const;
  Memory memory() const;

 private:
  friend class ParameterWriter;
  friend struct detail::OptimizerAccess;

  /// write_shared: the root of write_parameters() writes for all ranks.
  enum class Use { read, write, write_shared };
  detail::ViewReference parameter_reference(ParameterId, DType,
                                            const ExecutionSpace&, Use);
  detail::ViewReference gradient_reference(ParameterId, DType,
                                           const ExecutionSpace&);
  std::span<const Segment> averaged_segments(ParameterId, DType);
  detail::ViewReference averaged_reference(ParameterId, const Segment&);
  StepReport step_with_loss(double loss);
  void write_parameters_with(int root, void (*call)(void*, ParameterWriter&),
                             void* function);

  std::unique_ptr<detail::OptimizerCore, detail::EndOfCore> core_;
};

/// Writable views of all parameters, on the root of write_parameters. What lies
/// in the caller's own memory can also be written there.
class ParameterWriter {
 public:
  template <class D>
  ParameterView<D> parameter(ParameterId id) {
    using Value = typename ParameterView<D>::non_const_value_type;
    return detail::make_view<D>(
        optimizer_->parameter_reference(id, dtype_of<Value>, ExecutionSpace(),
                                        ShardedOptimizer::Use::write_shared));
  }

  /// Calls f(view) with the view of one extent of the run-time type. Throws as
  /// parameter() does.
  template <class F>
  void visit(ParameterId id, F&& f) {
    visit_dtype(optimizer_->parameters()[id].dtype, [&](auto value) {
      f(parameter<typename decltype(value)::type*>(id));
    });
  }

  const ParameterSet& parameters() const { return optimizer_->parameters(); }

 private:
  friend class ShardedOptimizer;
  explicit ParameterWriter(ShardedOptimizer& optimizer)
      : optimizer_(&optimizer) {}
  ShardedOptimizer* optimizer_;
};

template <std::invocable<ParameterWriter&> F>
void ShardedOptimizer::write_parameters(int root, F&& f) {
  using Function = std::remove_reference_t<F>;
  write_parameters_with(
      root,
      [](void* function, ParameterWriter& writer) {
        (*static_cast<Function*>(function))(writer);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace kzero
