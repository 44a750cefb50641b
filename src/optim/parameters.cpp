// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Parameters that reach all ranks by other ways than a step.
#include <algorithm>
#include <cstring>
#include <exception>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_core.hpp"
#include "storage/external_bucket.hpp"
#include "storage/kokkos_support.hpp"
#include "storage/strided_copy.hpp"

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
  for (std::int32_t i = 0; i < bucket_count(); ++i)
    broadcast_values(i, {0, plan.shards(i).total()}, root, subject.operation);
  reload_main();
  throw_if_any(*communicator, subject, problem);
}

// What lies in the caller's memory goes through a piece of staging.
void OptimizerCore::broadcast_values(std::int64_t bucket, Range range, int root,
                                     const char* operation) {
  const BucketWork& of = buckets[static_cast<std::size_t>(bucket)];
  const std::int64_t width = size_of(of.dtype);
  const Subject subject{operation, bucket};
  if (of.parameters != nullptr) {
    communicator->broadcast(of.parameters + range.begin * width,
                            range.size() * width, root, subject);
    return;
  }
  if (communicator->size() == 1) return;
  const ExternalBucket external{plan, parameters, bucket};
  std::byte* const piece = storage->gather_piece(0);
  const std::int64_t room = storage->gather_piece_bytes() / width;
  for (std::int64_t begin = range.begin; begin < range.end; begin += room) {
    const Range part{begin, std::min(begin + room, range.end)};
    const bool is_root = communicator->rank() == root;
    if (is_root) read_values(space, external, part, piece);
    communicator->broadcast(piece, part.size() * width, root, subject);
    if (!is_root) write_values(space, external, part, piece);
  }
}

void OptimizerCore::read_as_main(ParameterId id, Range range,
                                 std::byte* to) const {
  const ParameterInfo& info = parameters[id];
  const std::int64_t width = size_of(info.dtype);
  const auto widen = [&](const std::byte* from, std::int64_t place,
                         std::int64_t count) {
    host_kernels().widen[static_cast<std::size_t>(info.dtype)](
        from, reinterpret_cast<float*>(to) + place, count);
  };
  if (!info.external) {
    const std::byte* const from =
        bucket_of(id).parameters + (in_bucket(id).begin + range.begin) * width;
    if (width == 2)
      widen(from, 0, range.size());
    else
      std::memcpy(to, from, static_cast<std::size_t>(range.size() * width));
  } else if (width != 2) {
    read_elements(info.external->value, range, to);
  } else {
    alignas(64) std::byte narrow[tile_elements * 2];
    for (std::int64_t at = 0; at < range.size(); at += tile_elements) {
      const std::int64_t count = std::min(tile_elements, range.size() - at);
      const std::int64_t begin = range.begin + at;
      read_elements(info.external->value, {begin, begin + count}, narrow);
      widen(narrow, at, count);
    }
  }
}

void OptimizerCore::reload_main(ParameterId first) {
  const int rank = communicator->rank();
  fence(space, "kzero::reload");
  for_each_index(
      "kzero::reload", space, 0,
      static_cast<std::int64_t>(tiles.tiles().size()), [&](std::int64_t i) {
        const Tile& tile = tiles.tiles()[static_cast<std::size_t>(i)];
        const BucketWork& bucket =
            buckets[static_cast<std::size_t>(tile.bucket)];
        const bool is_external = bucket.parameters == nullptr;
        if (bucket.parameter_shard == nullptr && !is_external) return;
        const std::int64_t shard = plan.shards(tile.bucket).range(rank).begin;
        for (const Piece& piece : tiles.pieces_of(tile)) {
          const ParameterId id{piece.parameter};
          if (id < first) continue;
          read_as_main(id, shift(piece.in_shard, shard - in_bucket(id).begin),
                       bucket.main + piece.in_shard.begin * bucket.main_bytes);
        }
      });
}

}  // namespace kzero::detail
