// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The beginning of every save and load: all ranks go on, or all throw.
#pragma once

#include <kzero/load_options.hpp>
#include <kzero/sharded_optimizer.hpp>
#include <string>

namespace kzero::detail {

/// Collective. Waits for gathers under way, for the work on the optimizer's
/// execution space, and for the save that goes on behind the training. Throws
/// InvalidArgument on every rank when any rank is between a mark and step(),
/// has options that are unknown or a root that is no rank, and when the ranks
/// name different roots or other options. name is the call's; others: its other
/// options, in words; problem: of those.
void begin_collective_call(ShardedOptimizer& optimizer, const char* name,
                           int root, const LoadOptions& options = {},
                           const std::string& others = {},
                           std::string problem = {});

}  // namespace kzero::detail
