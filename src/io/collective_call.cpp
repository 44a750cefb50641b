// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/collective_call.hpp"

#include <kzero/error.hpp>
#include <string>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

void check_options(const char* name, const LoadOptions& options) {
  if (options.match != Match::strict && options.match != Match::partial)
    throw InvalidArgument(
        concat(name,
               ": LoadOptions::match is unknown (expected a code from 0 to 1, "
               "got ",
               static_cast<int>(options.match), "): use an enumerator"));
  if (options.other_rule != OtherRule::refuse &&
      options.other_rule != OtherRule::start_anew)
    throw InvalidArgument(concat(
        name,
        ": LoadOptions::other_rule is unknown (expected a code from 0 to "
        "1, got ",
        static_cast<int>(options.other_rule), "): use an enumerator"));
  if (options.other_type != OtherType::refuse &&
      options.other_type != OtherType::convert)
    throw InvalidArgument(concat(
        name,
        ": LoadOptions::other_type is unknown (expected a code from 0 to "
        "1, got ",
        static_cast<int>(options.other_type), "): use an enumerator"));
  if (options.engine < Engine::automatic || options.engine > Engine::direct)
    throw InvalidArgument(concat(
        name, ": the engine is unknown (expected a code from 0 to 2, got ",
        static_cast<int>(options.engine), "): use an enumerator"));
}

void check_root(const char* name, int root, int ranks) {
  if (root < 0 || root >= ranks)
    throw InvalidArgument(concat(name, ": root is ", root, ", ranks are 0 to ",
                                 ranks - 1, ": give a rank that is there"));
}

}  // namespace

void begin_collective_call(ShardedOptimizer& optimizer, const char* name,
                           int root, const LoadOptions& options,
                           const std::string& others, std::string problem) {
  try {
    OptimizerAccess::synchronize(optimizer, name);  // first: others may wait
    check_options(name, options);
    check_root(name, root, optimizer.communicator()->size());
  } catch (const InvalidArgument& error) {
    problem = error.what();
  }
  require_agreement(
      *optimizer.communicator(), {name},
      [&](const auto& fact) {
        fact("root", concat(root));
        fact("engine", concat(static_cast<int>(options.engine)));
        fact("verify", concat(options.verify));
        fact("options", others);
      },
      problem);
  if (const auto& pending = OptimizerAccess::pending_call(optimizer))
    OptimizerAccess::run(optimizer, [&] { pending->end(); });
}

}  // namespace kzero::detail
