// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Random parameters and options.
#include "io/random_programs/program.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "optim/overlap_model.hpp"
#include "support/partitions.hpp"

namespace kzero::test {

SerialGroup Program::some_group() {
  return {SerialRule(shared_.roll(4)), std::exp2(-shared_.roll(4))};
}

void Program::declare(ParameterSet& set, const std::string& group, int first) {
  constexpr DType types[][2] = {
      {DType::float32, DType::float32},  {DType::float32, DType::bfloat16},
      {DType::bfloat16, DType::float32}, {DType::bfloat16, DType::bfloat16},
      {DType::float64, DType::float64},  {DType::float64, DType::float32}};
  const int p = model_.size();
  const auto& type = types[shared_.roll(6)];
  SerialParameter of;
  of.name = detail::concat("p", p);
  of.group = group;
  const int sizes[] = {0, 1, shared_.roll(64), shared_.roll(200),
                       shared_.roll(700)};
  of.size = p == 0 ? 200 : sizes[shared_.roll(5)];
  of.dtype = type[0];
  of.gradient_dtype = type[1];
  of.keep = shared_.one_in(4);
  of.frozen = p > 0 && shared_.one_in(10);
  of.storage = p;
  int chunk = shared_.roll(3);
  const bool external = shared_.one_in(4);
  const Order strides = shared_.one_in(2) ? Order::right : Order::gaps;
  ParameterOptions options;
  if (const int other = p > first ? first + shared_.roll(p - first) : p;
      shared_.one_in(6) && other < p) {
    const std::string name = of.name;
    of = model_[model_[other].storage];
    options.tied_to = of.name;
    of.name = name;
    chunk = chunks_[std::size_t(other)];
  }
  options.dtype = of.dtype;
  options.gradient_dtype = of.gradient_dtype;
  options.group = of.group;
  options.chunk = chunk;
  options.unmarked = of.keep ? Unmarked::keep : Unmarked::zero;
  options.frozen = of.frozen;
  const auto start = [p](std::int64_t i) { return double(i % 9 + p); };
  if (of.storage == p && external) {
    const Own own({of.size}, strides, of.dtype, of.gradient_dtype);
    own.value.fill(start);
    own.add_to(set, of.name, options);
    own_.emplace(p, own);
  } else {
    set.add(of.name, {of.size}, options);
  }
  if (of.storage == p) {
    of.main.assign(std::size_t(of.size), 0.0);
    if (external)
      for (std::int64_t i = 0; i < of.size; ++i)
        of.main[std::size_t(i)] = start(i);
    for (auto& array : of.state) array.assign(std::size_t(of.size), 0.0);
  } else {
    of.main.clear();
    for (auto& array : of.state) array.clear();
  }
  model_.parameters.push_back(of);
  chunks_.push_back(chunk);
  for (int r = 0; r < ranks_; ++r) {
    gradients_[std::size_t(r)].emplace_back();
    marked_[std::size_t(r)].push_back(false);
  }
}

void Program::make_optimizer(const ParameterSet& set) {
  OptimizerOptions options;
  for (const auto& [name, group] : model_.groups)
    options.groups[name] = rule_of(group.rule, group.rate);
  const Reduction reductions[] = {Reduction::mean, Reduction::sum,
                                  Reduction::divide_by(2)};
  options.reduction = reductions[shared_.roll(3)];
  options.plan.bucket_bytes = 1 + shared_.roll(4000);
  const auto partition = some_partition(shared_.roll(4));
  partition.set(options.plan);
  if (shared_.one_in(4)) {
    for (int p = 0; p < model_.size(); ++p) options.plan.order.push_back({p});
    std::shuffle(options.plan.order.begin(), options.plan.order.end(),
                 shared_.engine());
  }
  if (shared_.one_in(4)) options.reduction_hook = hook_.function();
  const auto modes = all_modes();
  const Mode mode = modes[std::size_t(shared_.roll(int(modes.size())))];
  finite_ = mode.schedule == Schedule::interleaved;
  options.nonfinite = finite_ ? Nonfinite::report : Nonfinite::skip;
  reduction_ = options.reduction;
  log_ += detail::concat("\n(", name_of(mode), ", ", name_of(partition), ", ",
                         options.plan.bucket_bytes, " bytes, ", model_.size(),
                         " parameters)");
  optimizer_ =
      std::make_unique<ShardedOptimizer>(communicator_, set, mode.in(options));
}

void Program::start_anew(const SerialModel& saved) {
  const ParameterSet all = optimizer_->parameters();
  optimizer_.reset();
  ParameterSet set;
  for (int p = 0; p < saved.size(); ++p) {
    const ParameterInfo& info = all[{p}];
    ParameterOptions options{.dtype = info.dtype,
                             .gradient_dtype = info.gradient_dtype,
                             .group = info.group,
                             .chunk = info.chunk,
                             .tied_to = info.tied_to,
                             .unmarked = info.unmarked,
                             .frozen = info.frozen};
    if (own_.contains(p))
      own_.at(p).add_to(set, info.name, options);
    else
      set.add(info.name, info.extents, options);
  }
  std::erase_if(own_,
                [&](const auto& own) { return own.first >= saved.size(); });
  model_ = saved;
  const auto size = std::size_t(saved.size());
  chunks_.resize(size);
  for (std::size_t r = 0; r < std::size_t(ranks_); ++r) {
    gradients_[r].resize(size);
    marked_[r].resize(size);
    last_order_[r].clear();
    set_gradients(int(r), Gradient::Kind::unknown);
  }
  make_optimizer(set);
}

}  // namespace kzero::test
