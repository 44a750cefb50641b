// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/argument_checks.hpp"

#include <kzero/error.hpp>
#include <limits>
#include <string>

#include "comm/health.hpp"
#include "core/message.hpp"

namespace kzero::detail {

namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 62;
constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const Subject& subject, const std::string& problem) {
  throw InvalidArgument(concat(name_of(subject), " refused: ", problem));
}

void check_table(const ShardTable& shards, int ranks, const Subject& subject) {
  if (shards.ranks() != ranks) {
    refuse(subject,
           concat("the shard table is for ", counted(shards.ranks(), "rank"),
                  ", the communicator has ", ranks));
  }
  // Looked at before any other range, which would overflow.
  const Range first = shards.range(0);
  if (first.end > most_elements / ranks) {
    refuse(subject, concat("the shard of rank 0 is ", first,
                           ": expected at most 2^62 elements of all ranks"));
  }
  std::int64_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Range range = shards.range(rank);
    if (range.begin != begin || range.end < range.begin) {
      refuse(subject, concat("the shard of rank ", rank, " is ", range,
                             ": the offsets of a shard table must ascend "
                             "from 0"));
    }
    begin = range.end;
  }
}

void check_dtype(DType dtype, const Subject& subject) {
  if (dtype > DType::float64) {
    refuse(subject,
           concat("unknown number type (expected a code from 0 to 3, got ",
                  static_cast<int>(dtype), "): use a DType"));
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
  check_dtype(arguments.dtype, subject);
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
  check_dtype(arguments.dtype, subject);
  check_table(arguments.shards, ranks, subject);
  check_buffer(arguments.bucket, arguments.shards.total(), "bucket", subject);
}

void check_bytes(const void* data, std::int64_t bytes, const Subject& subject,
                 int blocks) {
  if (bytes < 0)
    refuse(subject, concat("a size of ", bytes, " bytes: expected 0 or more"));
  if (bytes > most_bytes / blocks) {
    refuse(subject, concat(bytes, " bytes from each of ", blocks,
                           " ranks: expected at most 2^63 - 1 in all"));
  }
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

void refuse_before_the_end(const Subject& subject) {
  refuse(subject, "wait() before next() has given null: take all pieces first");
}

void check_arguments(const RootedArguments& arguments, int rank, int ranks,
                     const Subject& subject) {
  check_root(arguments.root, ranks, subject);
  check_table(arguments.shards, ranks, subject);
  if (arguments.element_bytes < 0) {
    refuse(subject, concat("elements of ", arguments.element_bytes,
                           " bytes each: expected 0 or more"));
  }
  if (arguments.shards.total() > 0 &&
      arguments.element_bytes > most_bytes / arguments.shards.total()) {
    refuse(subject, concat(arguments.shards.total(), " elements of ",
                           arguments.element_bytes,
                           " bytes each: expected at most 2^63 "
                           "- 1 bytes"));
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
