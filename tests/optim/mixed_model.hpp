// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A model of every type and kind of parameter under several rules, whose
// gradients depend on its values and are marked by other ranks in another order
// or not at all; and the same training on one rank, written out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"
#include "support/serial_parameter.hpp"

namespace kzero::test {

/// own: in memory of the test's own, in this order.
struct MixedParameter {
  std::string name;
  std::vector<std::int64_t> extents;
  ParameterOptions kind = {};
  std::optional<Order> own = {};
};

using Rules = std::map<std::string, Rule>;

/// What a number of a main parameter's or a gradient's type is in this one.
inline double rounded_to(DType dtype, double value) {
  double rounded = value;
  visit_dtype(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using From = std::conditional_t<sizeof(T) == 8, double, float>;
    rounded = static_cast<double>(T(static_cast<From>(value)));
  });
  return rounded;
}

inline Rules mixed_rules() {
  return {{"default", AdamW{.learning_rate = 0.02, .weight_decay = 0.1}},
          {"momentum",
           Sgd{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01}},
          {"sign", Lion{.learning_rate = 0.01, .weight_decay = 0.1}}};
}

inline OptimizerOptions mixed_options(const Rules& rules,
                                      std::int64_t bucket_bytes = 3000) {
  OptimizerOptions options;
  options.rule = rules.at("default");
  options.groups = rules;
  options.plan.bucket_bytes = bucket_bytes;
  return options;
}

inline std::vector<MixedParameter> mixed_parameters() {
  using enum DType;
  std::vector<MixedParameter> all;
  const auto add = [&](std::vector<std::int64_t> extents,
                       ParameterOptions kind) -> MixedParameter& {
    all.push_back(
        {detail::concat("p", all.size()), std::move(extents), std::move(kind)});
    return all.back();
  };
  add({300}, {});
  add({71}, {.dtype = bfloat16, .group = "momentum"});
  add({0}, {.group = "sign"});
  add({129}, {.dtype = float64});
  add({5000}, {.gradient_dtype = bfloat16, .group = "momentum"});
  add({64}, {.dtype = float16, .group = "sign"});
  add({90}, {.frozen = true});
  add({130}, {.group = "sign", .unmarked = Unmarked::keep});
  add({20, 35}, {.group = "momentum"}).own = Order::left;
  add({500}, {.dtype = bfloat16, .gradient_dtype = bfloat16});
  add({1}, {.group = "sign", .chunk = 1});
  add({300}, {.tied_to = "p0"});
  add({9, 11}, {.dtype = bfloat16, .chunk = 1}).own = Order::gaps;
  add({211}, {.dtype = float64, .group = "momentum", .chunk = 1});
  add({37}, {.gradient_dtype = float64, .group = "sign", .chunk = 1});
  add({640}, {.dtype = float16, .gradient_dtype = float16, .chunk = 1});
  add({0, 3}, {.dtype = bfloat16, .group = "momentum", .chunk = 1});
  add({50}, {.dtype = float64, .unmarked = Unmarked::keep});
  add({1000}, {.dtype = bfloat16, .group = "sign", .chunk = 1});
  add({2100}, {.group = "momentum", .chunk = 1});
  return all;
}

/// Others, in no group and with names of their own.
inline std::vector<MixedParameter> more_parameters(const std::string& prefix) {
  using enum DType;
  std::vector<MixedParameter> all = {
      {prefix + "0", {77}},
      {prefix + "1", {33}, {.dtype = bfloat16}},
      {prefix + "2", {12, 9}, {.dtype = bfloat16}},
      {prefix + "3", {0}},
      {prefix + "4", {45}, {.frozen = true}},
      {prefix + "5", {401}, {.dtype = float64, .chunk = 1}},
      {prefix + "6", {64}, {.dtype = float16, .unmarked = Unmarked::keep}},
      {prefix + "7", {33}, {.dtype = bfloat16, .tied_to = prefix + "1"}},
      {prefix + "8", {2500}, {.gradient_dtype = bfloat16}},
      {prefix + "9", {5, 7}, {.chunk = 2}}};
  all[2].own = Order::left;
  all[9].own = Order::gaps;
  return all;
}

/// Whether gradients depend on the values that the parameters have.
enum class Feedback { values, none };

/// How parameters that are not the caller's get their first values.
/// written: by write_parameters, which rounds main parameters of 16-bit ones.
/// in_views: on every rank by itself; those of 16 bits stay zero.
enum class Start { written, in_views };

class MixedModel {
 public:
  explicit MixedModel(std::vector<MixedParameter> parameters,
                      Feedback feedback = Feedback::values,
                      Start how = Start::written)
      : feedback_(feedback), how_(how) {
    for (MixedParameter& each : parameters) {
      if (each.own) {
        const DType slope = each.kind.gradient_dtype.value_or(
            size_of(each.kind.dtype) == 2 ? DType::float32 : each.kind.dtype);
        owns_.emplace_back(
            Own(each.extents, *each.own, each.kind.dtype, slope));
        const std::int64_t p = set_.size();
        owns_.back()->add_to(set_, each.name, each.kind);
        owns_.back()->value.fill([&](auto i) { return start(p, i); });
      } else {
        owns_.emplace_back();
        set_.add(each.name, each.extents, each.kind);
      }
    }
  }

  const ParameterSet& set() const { return set_; }
  std::int64_t size() const { return set_.size(); }
  const ParameterInfo& info(std::int64_t p) const { return set_[{p}]; }
  bool is_name_of(std::int64_t p, std::int64_t storage) const {
    return info(p).storage.index == storage;
  }

  double start(std::int64_t p, std::int64_t i) const {
    if (how_ == Start::in_views && !info(p).external &&
        size_of(info(p).dtype) == 2)
      return 0.0;
    return double((i * 7 + p) % 23) / 8.0 - 1.0;
  }

  /// Of one rank, from the value that it has read.
  double gradient(int step, int rank, std::int64_t p, std::int64_t i,
                  double value) const {
    const double base =
        double((i * 13 + 5 * rank + 31 * step + p) % 97) / 24.0 - 2.0;
    return feedback_ == Feedback::values ? base + value * (0.5 + 0.25 * rank)
                                         : base;
  }

  /// In every third step a rank marks nothing, and all it has counts.
  static bool marks_any(int step, int rank, int ranks) {
    return step % 3 != 2 || rank != step % ranks;
  }
  bool marks(int step, int rank, std::int64_t p) const {
    if (info(p).unmarked == Unmarked::keep) return (step + rank + p) % 4 == 0;
    return p % 5 != 4 || (step + rank) % 2 == 0;
  }

  void write_start(ShardedOptimizer& optimizer, std::int64_t first = 0) const {
    const auto write = [&](auto& to) {
      for (std::int64_t p = 0; p < size(); ++p)
        if (!info(p).external && is_name_of(p, p))
          visit_dtype(info(p).dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            fill_view(to.template parameter<T*>({first + p}),
                      [&](auto i) { return start(p, i); });
          });
    };
    if (how_ == Start::in_views)
      write(optimizer);
    else
      optimizer.write_parameters(0, write);
  }

  std::vector<double> values(ShardedOptimizer& optimizer, std::int64_t first,
                             std::int64_t p) const {
    const auto& own = owns_[std::size_t(p)];
    if (!own) return read_parameter(optimizer, {first + p});
    optimizer.wait_parameter({first + p});
    return own->value.values();
  }

  template <class F>
  void fill_gradient(ShardedOptimizer& optimizer, std::int64_t first,
                     std::int64_t p, F&& f) const {
    if (const auto& own = owns_[std::size_t(p)])
      own->gradient.fill(f);
    else
      visit_dtype(info(p).gradient_dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        fill_view(optimizer.gradient<T*>({first + p}), f);
      });
  }

  bool gaps_are_whole() const {
    return std::ranges::all_of(
        owns_, [](const auto& own) { return !own || own->gaps_are_whole(); });
  }

 private:
  Feedback feedback_;
  Start how_;
  std::vector<std::optional<Own>> owns_;
  ParameterSet set_;
};

/// A model in an optimizer, from this parameter on.
struct Part {
  const MixedModel& model;
  std::int64_t first = 0;
};

/// Gradients and marks of this rank; random: the order in which they come.
inline void pass(ShardedOptimizer& optimizer, std::span<const Part> parts,
                 int step, std::mt19937& random) {
  const int rank = optimizer.communicator()->rank();
  const int ranks = optimizer.communicator()->size();
  std::vector<std::pair<const Part*, std::int64_t>> order;
  for (const Part& part : parts)
    for (std::int64_t p = 0; p < part.model.size(); ++p)
      if (!part.model.info(p).frozen) order.emplace_back(&part, p);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::int64_t> filled;
  for (const auto& [part, p] : order) {
    const MixedModel& model = part->model;
    const std::int64_t storage = model.info(p).storage.index;
    const bool any = MixedModel::marks_any(step, rank, ranks);
    const bool marked = any && model.marks(step, rank, p);
    // What is not marked does not count, whatever it holds.
    const bool counts = !any || model.marks(step, rank, storage);
    if (std::ranges::count(filled, part->first + storage) == 0) {
      const auto values = model.values(optimizer, part->first, storage);
      model.fill_gradient(optimizer, part->first, storage, [&](auto i) {
        return counts ? model.gradient(step, rank, storage, i,
                                       values[static_cast<std::size_t>(i)])
                      : 77.0;
      });
      filled.push_back(part->first + storage);
    }
    if (marked) optimizer.mark_ready({part->first + p});
  }
}

/// The same training on one rank that has the gradients of all.
class SerialModel {
 public:
  SerialModel(const MixedModel& model, Rules rules, int ranks)
      : model_(&model), rules_(std::move(rules)), ranks_(ranks) {
    for (std::int64_t p = 0; p < model.size(); ++p) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < model.info(p).size; ++i)
        values.push_back(model.start(p, i));
      if (main_dtype(model.info(p).dtype) == DType::float64)
        states_.emplace_back(SerialParameter<double>{values});
      else
        states_.emplace_back(SerialParameter<float>{
            std::vector<float>(values.begin(), values.end())});
    }
  }

  void set_rule(const std::string& group, const Rule& rule) {
    rules_.insert_or_assign(group, rule);
  }

  /// clip_norm: the norm adds up in an order of its own.
  void step(int step, std::optional<double> clip_norm = std::nullopt) {
    std::vector<std::vector<double>> averages;
    double squares = 0.0;
    for (std::int64_t p = 0; p < model_->size(); ++p) {
      averages.push_back(average(step, p));
      for (const double each : averages.back()) squares += each * each;
    }
    double clip = 1.0;
    if (clip_norm)
      clip = std::min(1.0,
                      double(float(*clip_norm / (std::sqrt(squares) + 1e-6))));
    for (std::int64_t p = 0; p < model_->size(); ++p)
      if (trains(p) && !kept(step, p))
        update(p, averages[std::size_t(p)], clip);
  }

  /// As the parameter's own type holds them.
  std::vector<double> values(std::int64_t p) const {
    const std::int64_t storage = model_->info(p).storage.index;
    std::vector<double> all;
    const DType dtype = model_->info(p).dtype;
    std::visit(
        [&](const auto& state) {
          for (const auto each : state.p)
            all.push_back(rounded_to(dtype, double(each)));
        },
        states_[std::size_t(storage)]);
    return all;
  }

  /// Main parameter, then state arrays; of a parameter that has no other name.
  std::vector<std::vector<double>> state(std::int64_t p) const {
    std::vector<std::vector<double>> all;
    std::visit(
        [&](const auto& state) {
          for (const auto& each : {state.p, state.first, state.second})
            all.emplace_back(each.begin(), each.end());
        },
        states_[std::size_t(p)]);
    return all;
  }

  std::int64_t count(std::int64_t p) const {
    const std::int64_t storage = model_->info(p).storage.index;
    return std::visit([](const auto& state) { return state.t; },
                      states_[std::size_t(storage)]);
  }

 private:
  using State = std::variant<SerialParameter<float>, SerialParameter<double>>;

  bool trains(std::int64_t p) const {
    return !model_->info(p).frozen && model_->is_name_of(p, p);
  }

  bool counts(int step, int rank, std::int64_t p) const {
    return !MixedModel::marks_any(step, rank, ranks_) ||
           model_->marks(step, rank, p);
  }

  bool kept(int step, std::int64_t p) const {
    if (model_->info(p).unmarked != Unmarked::keep) return false;
    for (int rank = 0; rank < ranks_; ++rank)
      if (counts(step, rank, p)) return false;
    return true;
  }

  /// In the type of the sum, then of the main parameter: kept in double.
  std::vector<double> average(int step, std::int64_t p) const {
    std::vector<double> all;
    if (!trains(p)) return all;
    const ParameterInfo& info = model_->info(p);
    const std::vector<double> read = values(p);
    const auto mean = [&](auto zero, std::int64_t i) {
      using Sum = decltype(zero);
      return ordered_sum<Sum>(
                 0, ranks_,
                 [&](int rank) {
                   return counts(step, rank, p)
                              ? rounded_to(
                                    info.gradient_dtype,
                                    model_->gradient(step, rank, p, i,
                                                     read[std::size_t(i)]))
                              : 0.0;
                 }) *
             Sum(1.0 / ranks_);
    };
    for (std::int64_t i = 0; i < info.size; ++i)
      all.push_back(rounded_to(main_dtype(info.dtype),
                               info.gradient_dtype == DType::float64
                                   ? mean(0.0, i)
                                   : double(mean(0.0f, i))));
    return all;
  }

  void update(std::int64_t p, const std::vector<double>& average, double clip) {
    std::visit(
        [&](auto& state) {
          using T = typename decltype(state.p)::value_type;
          std::vector<T> g(average.begin(), average.end());
          for (T& each : g) each *= T(clip);
          state.update(rules_.at(model_->info(p).group), g);
        },
        states_[std::size_t(p)]);
  }

  const MixedModel* model_;
  Rules rules_;
  int ranks_;
  std::vector<State> states_;
};

/// Collective: every rank leaves a loop, or the others would wait for it.
inline bool failed_on_any_rank() {
  int failed = testing::Test::HasFailure() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return failed != 0;
}

/// Bit for bit: main parameters and state arrays.
inline void expect_serial(const OptimizerState& state, const MixedModel& model,
                          const SerialModel& serial) {
  for (std::int64_t p = 0; p < model.size(); ++p) {
    if (model.info(p).storage.index != p || serial.count(p) == 0) continue;
    const ParameterState& got = state.parameter(model.info(p).name);
    const auto expected = serial.state(p);
    std::size_t next = size_of(model.info(p).dtype) == 2 ? 0 : 1;
    for (std::size_t k = 1; k < got.arrays.size(); ++k, ++next) {
      const StateArray& array = got.arrays[k];
      std::vector<double> values;
      if (array.dtype == DType::float64)
        for (const double each : got.elements<double>(array.name))
          values.push_back(each);
      else
        for (const float each : got.elements<float>(array.name))
          values.push_back(double(each));
      ASSERT_LT(next, expected.size());
      ASSERT_EQ(values, expected[next]) << got.name << ' ' << array.name;
    }
  }
}

/// Bit for bit. Collective: values on every rank, the state on rank 0.
inline void expect_serial(ShardedOptimizer& optimizer, const Part& part,
                          const SerialModel& serial) {
  const auto state = optimizer.consolidate(0);
  if (state) expect_serial(*state, part.model, serial);
  for (std::int64_t p = 0; p < part.model.size(); ++p) {
    ASSERT_EQ(part.model.values(optimizer, part.first, p), serial.values(p))
        << part.model.info(p).name;
    ASSERT_EQ(optimizer.update_count({part.first + p}), serial.count(p))
        << part.model.info(p).name;
  }
  EXPECT_TRUE(part.model.gaps_are_whole());
}

}  // namespace kzero::test
