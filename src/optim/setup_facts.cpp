// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/setup_facts.hpp"

#include <kzero/version.hpp>

#include "core/message.hpp"

namespace kzero::detail {
namespace {

std::string describe(const ParameterInfo& info) {
  std::string text = quoted(info.name);
  text += concat(" ", to_string(info.dtype), "[");
  for (std::size_t i = 0; i < info.extents.size(); ++i)
    text += concat(i == 0 ? "" : ",", info.extents[i]);
  text += concat("], gradient ", to_string(info.gradient_dtype), ", group ",
                 quoted(info.group), ", chunk ", info.chunk,
                 info.model_parallel == ModelParallel::split ? ", split" : "",
                 info.unmarked == Unmarked::keep ? ", kept when unmarked" : "",
                 info.frozen ? ", frozen" : "",
                 info.external ? ", in memory of the caller" : "");
  if (!info.tied_to.empty()) text += concat(", tied to ", quoted(info.tied_to));
  return text;
}

}  // namespace

std::string to_string(const Rule& rule) {
  std::string text = concat(rule.name(), "(");
  for (std::string_view name : rule.hyperparameters())
    text += concat(text.back() == '(' ? "" : ", ", name, " ", rule.get(name));
  return text + ")";
}

std::string to_string_with_beside(const Rule& rule) {
  std::string text = to_string(rule);
  if (rule.beside() != nullptr)
    text += concat(", beside it ", to_string(*rule.beside()));
  return text;
}

std::string to_string(const Nonfinite& nonfinite) {
  switch (nonfinite.action()) {
    case Nonfinite::Action::automatic:
      return "automatic";
    case Nonfinite::Action::report:
      return "report";
    case Nonfinite::Action::skip:
      return "skip";
    case Nonfinite::Action::throw_after:
      return concat("throw_after(", nonfinite.limit(), ")");
    case Nonfinite::Action::ignore:
      return "ignore";
  }
  return "unknown";
}

std::string to_string(const Reduction& reduction) {
  if (reduction == Reduction::mean) return "mean over ranks";
  if (reduction == Reduction::sum) return "sum over ranks";
  return concat("sum over ranks / ", reduction.divisor(1));
}

std::string to_string(Partition partition) {
  switch (partition) {
    case Partition::elements:
      return "elements";
    case Partition::parameters:
      return "parameters";
    case Partition::buckets:
      return "buckets";
  }
  return "unknown";
}

std::string to_string(Schedule schedule) {
  switch (schedule) {
    case Schedule::at_step:
      return "at_step";
    case Schedule::after_backward:
      return "after_backward";
    case Schedule::interleaved:
      return "interleaved";
  }
  return "unknown";
}

std::string to_string(GatherMode gather) {
  return gather == GatherMode::at_step ? "at_step" : "overlapped";
}

std::string to_string(Progress progress) {
  switch (progress) {
    case Progress::automatic:
      return "automatic";
    case Progress::thread:
      return "thread";
    case Progress::calls:
      return "calls";
  }
  return "unknown";
}

std::string to_string(const Scaler& scaler) {
  const DynamicScaler& scaling = scaler.scaling();
  switch (scaler.kind()) {
    case Scaler::Kind::none:
      return "none";
    case Scaler::Kind::constant:
      return concat("constant(", scaling.initial_scale, ")");
    case Scaler::Kind::dynamic:
      return concat("dynamic(initial_scale ", scaling.initial_scale,
                    ", growth ", scaling.growth, ", backoff ", scaling.backoff,
                    ", growth_interval ", scaling.growth_interval,
                    ", hysteresis ", scaling.hysteresis, ", minimum ",
                    scaling.minimum, ")");
  }
  return "unknown";
}

void for_each_rule_fact(std::span<const std::string> groups,
                        std::span<const Rule> rules, const Fact& fact) {
  for (std::size_t i = 0; i < rules.size(); ++i)
    for (const std::string_view name : rules[i].hyperparameters())
      fact(concat(name, " of group ", quoted(groups[i])),
           concat(rules[i].get(name)));
}

void for_each_setup_fact(const ParameterSet& parameters,
                         const OptimizerOptions& options, const Fact& fact) {
  fact("library version", version());
  fact("number of parameters", concat(parameters.size()));
  std::int64_t index = 0;
  for (const ParameterInfo& info : parameters.parameters())
    fact(concat("parameter ", index++), describe(info));
  fact("rule", to_string_with_beside(options.rule));
  for (const auto& [name, rule] : options.groups)
    fact(concat("rule of group ", quoted(name)), to_string_with_beside(rule));
  fact("schedule", to_string(options.schedule));
  fact("gather", to_string(options.gather));
  fact("share_parameters", options.share_parameters ? "true" : "false");
  fact("autotune", options.autotune ? "true" : "false");
  fact("progress", to_string(options.progress));
  fact("clip_norm", options.clip_norm ? concat(*options.clip_norm) : "none");
  fact("nonfinite", to_string(options.nonfinite));
  fact("scaler", to_string(options.scaler));
  fact("model_parallel",
       options.model_parallel
           ? concat("a group of ", options.model_parallel->size(), " ranks")
           : "none");
  fact("reduction", to_string(options.reduction));
  fact("reduction_hook", options.reduction_hook ? "a function" : "none");
  fact("plan.partition", to_string(options.plan.partition));
  fact("plan.divide", options.plan.divide ? "true" : "false");
  fact("plan.bucket_bytes", concat(options.plan.bucket_bytes));
  index = 0;
  for (const ParameterId id : options.plan.order)
    fact(concat("plan.order[", index++, "]"), concat(id.index));
}

}  // namespace kzero::detail
