// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The public face: checks of what one rank can check, then the core.
#include <kzero/error.hpp>
#include <kzero/sharded_optimizer.hpp>

#include "core/message.hpp"
#include "optim/left_gathers.hpp"
#include "optim/optimizer_core.hpp"

namespace kzero {
namespace detail {

void throw_view_rank(const ViewReference& reference, std::size_t rank) {
  throw InvalidArgument(
      concat("parameter ", quoted(reference.name), " has ",
             reference.extents.size(), " extents, but a view of ", rank,
             " was asked for: one * an extent, or a single * for all elements "
             "in C order"));
}

void throw_view_extent(const ViewReference& reference, std::size_t dimension,
                       std::size_t real, std::size_t asked) {
  throw InvalidArgument(concat("parameter ", quoted(reference.name), " has ",
                               real, " elements along dimension ", dimension,
                               ", but the view's type says ", asked,
                               ": give that number, or * for any"));
}

namespace {

using Core = std::unique_ptr<OptimizerCore, EndOfCore>;

/// The core, unless the optimizer was moved from.
OptimizerCore& live(const Core& core) {
  if (core) return *core;
  throw InvalidArgument(
      "this optimizer was moved from and holds nothing: use the one that it "
      "was moved to");
}

template <class F>
decltype(auto) run(const Core& core, F&& call) {
  return live(core).run([&]() -> decltype(auto) { return call(*core); });
}

/// On the default instance where space is null.
Core make_core(std::shared_ptr<Communicator> communicator,
               ParameterSet parameters, OptimizerOptions options,
               const ExecutionSpace* space) {
  if (!communicator)
    throw InvalidArgument(
        "the communicator is null: make one with make_communicator");
  if (!Kokkos::is_initialized()) {
    // Told where the others compare what they were given; throws.
    ModelGroup none;
    OptimizerCore::agree(
        *communicator, OptimizerCore::set_up, parameters, options,
        "Kokkos is not initialised (or finalised already): call "
        "Kokkos::initialize or kzero::initialize before an optimizer is made",
        none);
  }
  advance_left_gathers();
  return Core(std::make_unique<OptimizerCore>(
                  std::move(communicator), std::move(parameters),
                  std::move(options),
                  space != nullptr ? *space : ExecutionSpace())
                  .release());
}

void require_dtype(const ParameterInfo& info, DType dtype, DType asked,
                   std::string_view what) {
  if (dtype == asked) return;
  throw InvalidArgument(concat(what, " of parameter ", quoted(info.name),
                               " is ", to_string(dtype), ", but a view of ",
                               to_string(asked),
                               " was asked for: name its own type, or use "
                               "visit()"));
}

ViewReference reference(const ParameterInfo& info, void* data, DType dtype,
                        DType asked, std::string_view what) {
  require_dtype(info, dtype, asked, what);
  return {data, info.extents, info.size, info.name};
}

void* own_memory(const ParameterInfo& info, const ExternalArray& array,
                 std::string_view what) {
  if (!array.is_contiguous())
    throw InvalidArgument(concat(
        what, " of parameter ", quoted(info.name),
        " lies in your own memory with strides ", array.strides,
        ", and a view in C order was asked for: use your own view of it"));
  return array.data;
}

void require_gradient(const ParameterInfo& info) {
  if (!info.frozen) return;
  throw InvalidArgument(
      concat("parameter ", quoted(info.name),
             " is frozen: it has no gradient; read its value with "
             "parameter()"));
}

}  // namespace
}  // namespace detail

using detail::live;
using detail::OptimizerCore;
using detail::run;

ShardedOptimizer::ShardedOptimizer(std::shared_ptr<Communicator> communicator,
                                   ParameterSet parameters,
                                   OptimizerOptions options,
                                   const ExecutionSpace& space)
    : core_(detail::make_core(std::move(communicator), std::move(parameters),
                              std::move(options), &space)) {}

ShardedOptimizer::ShardedOptimizer(std::shared_ptr<Communicator> communicator,
                                   ParameterSet parameters,
                                   OptimizerOptions options)
    : core_(detail::make_core(std::move(communicator), std::move(parameters),
                              std::move(options), nullptr)) {}

ShardedOptimizer::~ShardedOptimizer() = default;
ShardedOptimizer::ShardedOptimizer(ShardedOptimizer&&) noexcept = default;
ShardedOptimizer& ShardedOptimizer::operator=(ShardedOptimizer&&) noexcept =
    default;

detail::ViewReference ShardedOptimizer::parameter_reference(
    ParameterId id, DType dtype, const ExecutionSpace&, Use use) {
  const ParameterInfo& info = parameters()[id];
  if (use == Use::write && options().share_parameters && !info.external)
    throw InvalidArgument(detail::concat(
        "a view to write to of parameter ", detail::quoted(info.name),
        ", which the ranks of a node have in common (share_parameters): read "
        "it by parameter<const T*>, write it by write_parameters"));
  run(core_, [&](OptimizerCore& core) { core.wait_for_parameter(id); });
  constexpr const char* what = "the value";
  void* data = info.external
                   ? detail::own_memory(info, info.external->value, what)
                   : live(core_).bucket_of(id).parameters +
                         live(core_).in_bucket(id).begin * size_of(info.dtype);
  return detail::reference(info, data, info.dtype, dtype, what);
}

detail::ViewReference ShardedOptimizer::gradient_reference(
    ParameterId id, DType dtype, const ExecutionSpace&) {
  const ParameterInfo& info = parameters()[id];
  detail::require_gradient(info);
  constexpr const char* what = "the gradient";
  void* data =
      info.external
          ? detail::own_memory(info, info.external->gradient, what)
          : live(core_).bucket_of(id).gradients +
                live(core_).in_bucket(id).begin * size_of(info.gradient_dtype);
  return detail::reference(info, data, info.gradient_dtype, dtype, what);
}

std::span<const Segment> ShardedOptimizer::averaged_segments(ParameterId id,
                                                             DType dtype) {
  const ParameterInfo& info = parameters()[id];
  detail::require_gradient(info);
  live(core_).require_averaged(info);
  detail::require_dtype(info, main_dtype(info.dtype), dtype,
                        "the averaged gradient");
  return segments(id);
}

detail::ViewReference ShardedOptimizer::averaged_reference(
    ParameterId id, const Segment& segment) {
  return {live(core_).averaged_gradient(segment),
          {},
          segment.in_shard.size(),
          parameters()[id].name};
}

void ShardedOptimizer::write_parameters_with(
    int root, void (*call)(void*, ParameterWriter&), void* function) {
  ParameterWriter writer(*this);
  run(core_, [&](OptimizerCore& core) {
    core.write_parameters(root, call, function, &writer);
  });
}

void ShardedOptimizer::broadcast_parameters(int root) {
  run(core_, [&](OptimizerCore& core) {
    core.write_parameters(root, nullptr, nullptr, nullptr);
  });
}

void ShardedOptimizer::reload_main_from_parameters() {
  run(core_, [&](OptimizerCore& core) { core.wait_for_all_parameters(); });
  live(core_).require_unmarked("reload_main_from_parameters");
  live(core_).reload_main();
}

void ShardedOptimizer::zero_gradients(const ExecutionSpace& space) {
  run(core_, [&](OptimizerCore& core) { core.zero_gradients(space); });
}

void ShardedOptimizer::mark_ready(ParameterId id, const ExecutionSpace& space) {
  run(core_, [&](OptimizerCore& core) { core.mark_ready(id, space); });
}

void ShardedOptimizer::wait_parameter(ParameterId id, const ExecutionSpace&) {
  static_cast<void>(parameters()[id]);  // throws for one that is not there
  run(core_, [&](OptimizerCore& core) { core.wait_for_parameter(id); });
}

void ShardedOptimizer::wait_parameters(const ExecutionSpace&) {
  run(core_, [&](OptimizerCore& core) { core.wait_for_all_parameters(); });
}

void ShardedOptimizer::finish_gather(int chunk, const ExecutionSpace&) {
  run(core_, [&](OptimizerCore& core) { core.finish_gather(chunk); });
}

StepReport ShardedOptimizer::step() {
  return run(core_,
             [](OptimizerCore& core) { return core.step(std::nullopt); });
}

StepReport ShardedOptimizer::step_with_loss(double loss) {
  return run(core_, [&](OptimizerCore& core) { return core.step(loss); });
}

std::vector<ParameterId> ShardedOptimizer::add_group(
    const std::string& group, const ParameterSet& parameters,
    const Rule& rule) {
  return run(core_, [&](OptimizerCore& core) {
    return core.add_group(group, parameters, rule);
  });
}

std::vector<ParameterId> ShardedOptimizer::readiness_order() const {
  const auto order = live(core_).readiness_order();
  return {order.begin(), order.end()};
}

void ShardedOptimizer::rebuild_buckets() {
  run(core_, [](OptimizerCore& core) { core.rebuild_buckets(); });
}

double ShardedOptimizer::loss_scale() const {
  return live(core_).loss_scale.scale;
}

LossScaleView ShardedOptimizer::device_loss_scale() const {
  return LossScaleView(&live(core_).loss_scale.scale);
}

Group ShardedOptimizer::group(const std::string& name) {
  return {live(core_), live(core_).group_index(name)};
}

std::int64_t ShardedOptimizer::update_count(ParameterId id) const {
  return live(core_).update_count(parameters()[id].storage);
}

std::int64_t ShardedOptimizer::steps() const { return live(core_).steps; }

std::span<const Segment> ShardedOptimizer::segments(ParameterId id) const {
  return live(core_).segments_of(id);
}

const ParameterSet& ShardedOptimizer::parameters() const {
  return live(core_).parameters;
}
const OptimizerOptions& ShardedOptimizer::options() const {
  return live(core_).options;
}
const Plan& ShardedOptimizer::plan() const { return live(core_).plan; }
const std::shared_ptr<Communicator>& ShardedOptimizer::communicator() const {
  return live(core_).communicator;
}

std::string ShardedOptimizer::describe() const {
  return live(core_).describe();
}
Memory ShardedOptimizer::memory() const { return live(core_).memory(); }

const std::string& Group::name() const { return core_->group_names[index_]; }
std::string_view Group::rule() const { return core_->rules[index_].name(); }

double Group::get(std::string_view hyperparameter) const {
  return core_->rules[index_].get(hyperparameter);
}

void Group::set(std::string_view hyperparameter, double value) {
  core_->require_settable();
  core_->rules[index_].set(hyperparameter, value);
  core_->hash_rules();
}

}  // namespace kzero
