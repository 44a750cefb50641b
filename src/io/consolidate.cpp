// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A member of the optimizer that shares its code with the checkpoints: what
// they write to a file, it gathers in memory.
#include <kzero/sharded_optimizer.hpp>
#include <optional>

#include "io/collective_call.hpp"
#include "io/gather_engine.hpp"
#include "io/root_status.hpp"
#include "io/state_arrays.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

std::optional<OptimizerState> ShardedOptimizer::consolidate(int root) {
  using namespace detail;
  const char* const name = "consolidate";
  begin_collective_call(*this, name, root);
  RootStatus status(*communicator(), name, root);
  FileLayout layout;
  std::optional<OptimizerState> state;
  std::optional<StateSink> sink;
  GatherRoot to;
  status.attempt([&] {
    layout = layout_of(*this, {});
    state = state_of(layout, options().scaler);
    sink.emplace(*state);
    to = {&layout, &*sink};
  });
  OptimizerAccess::run(*this, [&] { gather_arrays(*this, to, status); });
  return state;
}

}  // namespace kzero
