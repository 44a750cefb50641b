// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The optimizer's state, but for the arrays, as JSON: for programs that store
// parameters and moments themselves. docs/checkpoint_format.md describes the
// text.
#pragma once

#include <kzero/sharded_optimizer.hpp>
#include <string>
#include <string_view>

namespace kzero {

/// Counts of steps, rules and hyperparameters of the groups, update counts of
/// the parameters, and the state of the loss scaler. Local; the same text on
/// every rank.
std::string state_json(const ShardedOptimizer& optimizer);

/// Collective. Sets what state_json has written of an optimizer with the same
/// parameters, groups and rules; every number comes back exactly. A scaler that
/// is not the program's is treated as load_checkpoint does. Then there is no
/// averaged_gradient() until the next step().
/// Throws InvalidArgument on every rank, with nothing changed, for a text that
/// is no such JSON or does not fit, when the ranks give different texts, and
/// when any rank is between a mark and step().
void load_state_json(ShardedOptimizer& optimizer, std::string_view json);

}  // namespace kzero
