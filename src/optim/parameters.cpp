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

void OptimizerCore::write_parameters(int root,
                                     void (*call)(void*, ParameterWriter&),
                                     void* function, ParameterWriter* writer) {
  constexpr Subject subject{"write_parameters"};
  std::string problem;
  try {
    if (root < 0 || root >= communicator->size())
      throw InvalidArgument(concat("write_parameters: root ", root,
                                   " is not one of the ", communicator->size(),
                                   " ranks"));
    require_unmarked("write_parameters");
    if (communicator->rank() == root && call != nullptr) {
      call(function, *writer);
      fence(ExecutionSpace(), "kzero::write");
    }
    fence(space, "kzero::write");
  } catch (const std::exception& error) {
    problem = *error.what() != '\0' ? error.what() : "unknown exception";
  } catch (...) {
    problem = "write_parameters: the function threw what is no std::exception";
  }
  throw_if_any(*communicator, subject, problem);
  for (std::int32_t i = 0; i < bucket_count(); ++i) {
    const BucketWork& bucket = buckets[static_cast<std::size_t>(i)];
    communicator->broadcast(bucket.parameters,
                            plan.shards(i).total() * size_of(bucket.dtype),
                            root, {"write_parameters", i});
  }
  reload_main();
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
