// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What every backend checks of its arguments, with the same messages.
#pragma once

#include <cstdint>
#include <cstring>
#include <kzero/communicator.hpp>

namespace kzero::detail {

/// Each throws InvalidArgument that names the subject.
void check_arguments(const ReduceArguments& arguments, int ranks);
void check_arguments(const GatherArguments& arguments, int ranks);
/// blocks: how many of this size there are.
void check_bytes(const void* data, std::int64_t bytes, const Subject& subject,
                 int blocks = 1);
void check_root(int root, int ranks, const Subject& subject);

/// Throws InvalidArgument: reductions are taken in the order of their start.
[[noreturn]] void refuse_out_of_order(const Subject& asked,
                                      const Subject& first);

/// Throws InvalidArgument: wait() of a reduction comes after its last piece.
[[noreturn]] void refuse_before_the_end(const Subject& subject);

/// Of gather and scatter; whole is null where it is not looked at.
struct RootedArguments {
  const void* whole = nullptr;  // at root, all shards
  const void* part = nullptr;   // this rank's shard
  ShardTable shards;
  std::int64_t element_bytes = 1;
  int root = 0;
};
void check_arguments(const RootedArguments& arguments, int rank, int ranks,
                     const Subject& subject);

inline Subject subject_of(const ReduceArguments& arguments) {
  return {"reduce", arguments.index};
}

inline Subject subject_of(const GatherArguments& arguments) {
  return {"all-gather", arguments.index};
}

/// Also for no bytes at a null pointer, and for data that is in place.
inline void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) {
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace kzero::detail
