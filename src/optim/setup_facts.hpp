// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What must be the same on every rank when an optimizer is made.
#pragma once

#include <functional>
#include <kzero/optimizer_options.hpp>
#include <kzero/parameter_set.hpp>
#include <span>
#include <string>
#include <string_view>

namespace kzero::detail {

using Fact = std::function<void(std::string_view name, std::string_view value)>;

/// Calls fact with each of them, in a fixed order.
void for_each_setup_fact(const ParameterSet& parameters,
                         const OptimizerOptions& options, const Fact& fact);

/// Likewise with each hyperparameter of each group.
void for_each_rule_fact(std::span<const std::string> groups,
                        std::span<const Rule> rules, const Fact& fact);

/// "adamw(learning_rate 0.001, ...)".
std::string to_string(const Rule& rule);
/// Likewise, and the rule beside it where it has one.
std::string to_string_with_beside(const Rule& rule);

/// "report", "skip", "throw_after(3)" or "ignore".
std::string to_string(const Nonfinite& nonfinite);

/// "none", "constant(128)" or "dynamic(initial_scale 65536, ...)".
std::string to_string(const Scaler& scaler);
std::string to_string(Partition partition);
std::string to_string(Schedule schedule);
std::string to_string(GatherMode gather);
std::string to_string(Progress progress);

/// The divisor of the sum over ranks, in words.
std::string to_string(const Reduction& reduction);

}  // namespace kzero::detail
