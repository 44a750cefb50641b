// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Members of the optimizer that share their code with the checkpoints: what
// those read from a file, they take from memory.
#include <kzero/error.hpp>
#include <kzero/sharded_optimizer.hpp>
#include <optional>
#include <string>

#include "core/log.hpp"
#include "core/message.hpp"
#include "io/collective_call.hpp"
#include "io/gather_engine.hpp"
#include "io/restored_numbers.hpp"
#include "io/root_status.hpp"
#include "io/state_arrays.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

namespace {

using namespace detail;

constexpr const char* name = "load_state";

/// state: root's, not looked at elsewhere.
void load(ShardedOptimizer& optimizer, const OptimizerState* state, int root,
          const LoadOptions& options) {
  begin_collective_call(optimizer, name, root, options);
  Communicator& communicator = *optimizer.communicator();
  RootStatus status(communicator, name, root);
  FileLayout model;
  std::optional<StateSource> source;
  RestoredNumbers numbers;
  ScatterRoot from;
  std::string problem;
  if (status.is_root()) {
    try {
      if (state == nullptr)
        throw InvalidArgument(
            concat("root, rank ", root, ", has no state: give it one there"));
      model = layout_of(optimizer, {});
      numbers = restored_numbers(optimizer, model, layout_of(*state), options,
                                 Medium::state);
      source.emplace(*state);
      from = {&model, &*source, &numbers.origins};
    } catch (const std::exception& error) {
      problem = concat(name, ": ", error.what());
    }
  }
  throw_if_any(communicator, {name}, problem);
  broadcast(communicator, numbers, {name}, root);
  OptimizerAccess::run(optimizer, [&] {
    scatter_arrays(optimizer, from, numbers.loaded, status);
  });
  restore(optimizer, numbers);
  for (const std::string& warning : numbers.warnings)
    log(LogLevel::warning, concat(name, ": ", warning));
}

}  // namespace

void ShardedOptimizer::load_state(const OptimizerState& state, int root,
                                  const LoadOptions& options) {
  load(*this, &state, root, options);
}

void ShardedOptimizer::load_state(const std::optional<OptimizerState>& state,
                                  int root, const LoadOptions& options) {
  load(*this, state.has_value() ? &*state : nullptr, root, options);
}

}  // namespace kzero
