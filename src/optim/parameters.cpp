// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Parameters that reach all ranks by other ways than a step.
#include <exception>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_core.hpp"
#include "storage/kokkos_support.hpp"

namespace kzero::detail {
namespace {

// What the caller's function throws, in words; empty when it returns.
std::string problem_of(void (*call)(void*, ParameterWriter&), void* function,
                       ParameterWriter& writer) {
  try {
    call(function, writer);
    fence(ExecutionSpace(), "kzero::write");
    return "";
  } catch (const std::exception& error) {
    return concat("write_parameters: the function threw: ", error.what());
  } catch (...) {
    return "write_parameters: the function threw what is no std::exception";
  }
}

}  // namespace

void OptimizerCore::write_parameters(int root,
                                     void (*call)(void*, ParameterWriter&),
                                     void* function, ParameterWriter* writer) {
  wait_for_all_parameters();  // first: others may wait for this rank
  const Subject subject{call != nullptr ? "write_parameters"
                                        : "broadcast_parameters"};
  std::string problem;
  try {
    if (root < 0 || root >= communicator->size())
      throw InvalidArgument(concat(
          subject.operation, ": root is ", root, ", ranks are 0 to ",
          communicator->size() - 1, ": give the rank that has the values"));
    require_unmarked(subject.operation);
  } catch (const InvalidArgument& error) {
    problem = error.what();
  }
  require_agreement(
      *communicator, subject,
      [root](const auto& fact) { fact("root", concat(root)); }, problem);

  if (communicator->rank() == root && call != nullptr)
    problem = problem_of(call, function, *writer);
  fence(space, "kzero::write");
  // Also after a problem: what f has written until then goes to all ranks, so
  // that they stay equal.
  for (std::int32_t i = 0; i < bucket_count(); ++i) {
    const BucketWork& bucket = buckets[static_cast<std::size_t>(i)];
    communicator->broadcast(bucket.parameters,
                            plan.shards(i).total() * size_of(bucket.dtype),
                            root, {subject.operation, i});
  }
  reload_main();
  throw_if_any(*communicator, subject, problem);
}

void OptimizerCore::reload_main() {
  const HostKernels& kernels = host_kernels();
  fence(space, "kzero::reload");
  for_each_index(
      "kzero::reload", space, 0,
      static_cast<std::int64_t>(tiles.tiles().size()), [&](std::int64_t i) {
        const Tile& tile = tiles.tiles()[static_cast<std::size_t>(i)];
        const BucketWork& bucket =
            buckets[static_cast<std::size_t>(tile.bucket)];
        if (bucket.parameter_shard == nullptr) return;
        const WidenFunction widen =
            kernels.widen[static_cast<std::size_t>(bucket.dtype)];
        widen(bucket.parameter_shard + tile.in_shard.begin * 2,
              reinterpret_cast<float*>(bucket.main) + tile.in_shard.begin,
              tile.in_shard.size());
      });
}

}  // namespace kzero::detail
