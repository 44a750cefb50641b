// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What an optimizer and its state hold, against the serial model.
#include "io/random_programs/program.hpp"

#include <algorithm>
#include <cmath>

#include "support/optimizer_support.hpp"

namespace kzero::test {

void Program::expect(bool right, std::string_view what) {
  if (!right && failure_.empty())
    failure_ = detail::concat(what, " in ", name());
}

std::vector<double> Program::values_here(int storage) {
  const ParameterId id{storage};
  const auto own = own_.find(storage);
  if (own == own_.end()) return read_parameter(*optimizer_, id);
  optimizer_->wait_parameter(id);
  return own->second.value.values();
}

void Program::read(int p) {
  const int storage = model_[p].storage;
  if (is_marked(rank_, storage)) return;
  const auto values = values_here(storage);
  const SerialParameter& of = model_[storage];
  if (values.size() != of.main.size())
    return expect(false, of.name + " has another size");
  for (std::size_t i = 0; i < of.main.size(); ++i)
    if (values[i] != of.value(i))
      return expect(false, detail::concat(of.name, "[", i, "] is ", values[i],
                                          ", expected ", of.value(i)));
}

void Program::check_counts() {
  expect(optimizer_->steps() == model_.steps, "steps() differs");
  for (int p = 0; p < model_.size(); ++p)
    expect(optimizer_->update_count({p}) == model_[model_[p].storage].updates,
           model_[p].name + ": update_count() differs");
  for (const auto& [name, group] : model_.groups)
    expect(optimizer_->group(name).get("learning_rate") == group.rate,
           "the rate of " + name + " differs");
  std::vector<int> seen;
  for (const ParameterId id : optimizer_->readiness_order())
    seen.push_back(int(id.index));
  expect(seen == last_order_[std::size_t(rank_)], "readiness_order() differs");
}

void Program::check_array(const ParameterState& saved, const std::string& array,
                          const SerialParameter& of,
                          const std::vector<double>& expected) {
  if (saved.find(array) == nullptr) {
    expect(false, of.name + " has no array " + array);
    return;
  }
  const auto compare = [&](auto type) {
    using T = typename decltype(type)::type;
    const auto got = saved.elements<T>(array);
    expect(got.size() == expected.size(), array + " has another size");
    for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
      if (double(got[i]) != expected[i]) {
        expect(false,
               detail::concat(array, " of ", of.name, "[", i, "] is ",
                              double(got[i]), ", expected ", expected[i]));
        return;
      }
  };
  visit_dtype(saved.find(array)->dtype, compare);
}

void Program::check_state(const OptimizerState& state) {
  expect(state.steps == model_.steps, "steps of the state differ");
  expect(state.skipped_total == model_.skipped_total &&
             state.skipped_in_a_row == model_.skipped_in_a_row,
         "skipped steps of the state differ");
  expect(state.groups.size() == model_.groups.size(),
         "the state has other groups");
  for (const auto& [name, group] : model_.groups) {
    const GroupState& saved = state.group(name);
    expect(saved.rule == rule_of(group.rule, 1.0).name() &&
               saved.hyperparameters.at("learning_rate") == group.rate,
           "group " + name + " of the state differs");
  }
  std::size_t count = 0;
  for (int p = 0; p < model_.size(); ++p) {
    if (!model_.is_storage(p)) continue;
    ++count;
    const SerialParameter& of = model_[p];
    const ParameterState& saved = state.parameter(of.name);
    expect(saved.update_count == of.updates, of.name + " has another count");
    expect(saved.group == of.group, of.name + " is in another group");
    std::vector<double> values;
    for (std::size_t i = 0; i < of.main.size(); ++i)
      values.push_back(of.value(i));
    check_array(saved, "value", of, values);
    if (of.frozen) continue;
    if (of.dtype == DType::bfloat16) check_array(saved, "main", of, of.main);
    const auto names = state_names_of(model_.groups.at(of.group).rule);
    for (std::size_t k = 0; k < names.size(); ++k)
      check_array(saved, names[k], of, of.state[k]);
  }
  expect(state.parameters.size() == count, "the state has other parameters");
}

void Program::check_everything() {
  const auto state = optimizer_->consolidate(0);
  if (state) check_state(*state);
  check_counts();
}

void Program::check_average(int p, const std::vector<double>& expected) {
  visit_dtype(main_dtype(model_[p].dtype), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (sizeof(T) >= 4) {
      const auto views = optimizer_->averaged_gradient<T>({p});
      const auto segments = optimizer_->segments({p});
      for (std::size_t k = 0; k < views.size(); ++k)
        for (std::int64_t i = 0; i < segments[k].in_parameter.size(); ++i)
          expect(double(views[k](std::size_t(i))) ==
                     expected[std::size_t(segments[k].in_parameter.begin + i)],
                 "averaged_gradient() differs");
    }
  });
}

void Program::expect_no_average() {
  visit_dtype(main_dtype(model_[0].dtype), [&](auto type) {
    using T = typename decltype(type)::type;
    expect_throw<InvalidArgument>(
        "averaged_gradient", [&] { optimizer_->averaged_gradient<T>({0}); });
  });
}

void Program::check_report(const StepReport& report, const Sums& sums) {
  expect(report.updated() == !sums.skipped, "updated() differs");
  expect(report.skipped_total() == model_.skipped_total &&
             report.skipped_in_a_row() == model_.skipped_in_a_row,
         "skipped steps differ");
  expect(report.nonfinite_source().has_value() == sums.skipped,
         "nonfinite_source() differs");
  if (sums.skipped && report.nonfinite_source()) {
    expect(report.nonfinite_source()->rank == sums.source->rank &&
               report.nonfinite_source()->parameter == sums.source->parameter,
           "nonfinite_source() is another");
    expect_no_average();
  }
  if (sums.skipped) return;
  const double norm = std::sqrt(sums.squares);
  expect(std::abs(report.gradient_norm() - norm) <= 1e-6 * (1.0 + norm),
         "gradient_norm() differs");
  const int p = dice(unsigned(rank_), 4).roll(model_.size());
  if (model_.is_trained(p)) check_average(p, sums.averages[std::size_t(p)]);
}

}  // namespace kzero::test
