// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/argument_checks.hpp"

#include <kzero/error.hpp>
#include <string>

#include "comm/health.hpp"
#include "core/message.hpp"

namespace kzero::detail {

namespace {

[[noreturn]] void refuse(const Subject& subject, const std::string& problem) {
  throw InvalidArgument(concat(name_of(subject), " refused: ", problem));
}

void check_table(const ShardTable& shards, int ranks, const Subject& subject) {
  if (shards.ranks() != ranks) {
    refuse(subject,
           concat("the shard table is for ", counted(shards.ranks(), "rank"),
                  ", the communicator has ", ranks));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (shards.size(rank) < 0) {
      refuse(subject,
             concat("the shard of rank ", rank, " is ", shards.range(rank),
                    ": the offsets of a shard table must ascend"));
    }
  }
}

void check_buffer(const void* buffer, std::int64_t size, const char* name,
                  const Subject& subject) {
  if (buffer == nullptr && size > 0) {
    refuse(subject, concat("the ", name, " is null but ", size,
                           " elements or bytes are expected there"));
  }
}

}  // namespace

void check_arguments(const ReduceArguments& arguments, int ranks) {
  const Subject subject = subject_of(arguments);
  check_table(arguments.shards, ranks, subject);
  check_buffer(arguments.bucket, arguments.shards.total(), "bucket", subject);
  if (arguments.piece_bytes < 1 || arguments.piece_granularity < 1) {
    refuse(subject,
           concat("piece_bytes = ", arguments.piece_bytes,
                  ", piece_granularity = ", arguments.piece_granularity,
                  ": both must be at least 1"));
  }
}

void check_arguments(const GatherArguments& arguments, int ranks) {
  const Subject subject = subject_of(arguments);
  check_table(arguments.shards, ranks, subject);
  check_buffer(arguments.bucket, arguments.shards.total(), "bucket", subject);
}

void check_bytes(const void* data, std::int64_t bytes, const Subject& subject) {
  if (bytes < 0) refuse(subject, concat("a size of ", bytes, " bytes"));
  check_buffer(data, bytes, "buffer", subject);
}

void check_root(int root, int ranks, const Subject& subject) {
  if (root < 0 || root >= ranks) {
    refuse(subject, concat("root is ", root, ", ranks are 0 to ", ranks - 1));
  }
}

void refuse_out_of_order(const Subject& asked, const Subject& first) {
  refuse(asked, concat("take all pieces of ", name_of(first),
                       " first (reductions are taken in the order of their "
                       "start, each until next() gives null)"));
}

void check_arguments(const RootedArguments& arguments, int rank, int ranks,
                     const Subject& subject) {
  check_root(arguments.root, ranks, subject);
  check_table(arguments.shards, ranks, subject);
  if (arguments.element_bytes < 0) {
    refuse(subject,
           concat("elements of ", arguments.element_bytes, " bytes each"));
  }
  const std::int64_t bytes = arguments.element_bytes;
  check_buffer(arguments.part, arguments.shards.size(rank) * bytes,
               "buffer of this rank's shard", subject);
  if (rank == arguments.root) {
    check_buffer(arguments.whole, arguments.shards.total() * bytes,
                 "buffer of all shards", subject);
  }
}

}  // namespace kzero::detail
