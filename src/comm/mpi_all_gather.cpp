// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/mpi_all_gather.hpp"

#include <utility>

#include "comm/argument_checks.hpp"

namespace kzero::detail {

MpiAllGather::MpiAllGather(MpiLink& link) : link_(link), messages_(link) {}

void MpiAllGather::start(const GatherArguments& arguments,
                         std::shared_ptr<void> owner) {
  subject_ = subject_of(arguments);
  messages_.begin(
      link_.begin(Collective::all_gather, subject_, arguments.index));
  ended_ = false;

  const std::int64_t element = size_of(arguments.dtype);
  auto* bucket = static_cast<std::byte*>(arguments.bucket);
  const ShardTable& shards = arguments.shards;
  // Round the ring, so that not all ranks start with the same peer.
  for (int distance = 1; distance < link_.size(); ++distance) {
    const int peer = link_.neighbour(-distance);
    if (shards.size(peer) == 0) continue;
    messages_.receive(bucket + shards.range(peer).begin * element,
                      shards.size(peer) * element, peer);
  }
  const Range own = shards.range(link_.rank());
  if (!own.empty()) {
    for (int distance = 1; distance < link_.size(); ++distance) {
      messages_.send(bucket + own.begin * element, own.size() * element,
                     link_.neighbour(distance));
      link_.count_sent(subject_, own.size() * element);
    }
  }
  owner_ = std::move(owner);
}

bool MpiAllGather::test() {
  ended_ = messages_.test(Until::ended);
  return ended_;
}

void MpiAllGather::wait() {
  messages_.wait(Until::ended);
  ended_ = true;
}

void MpiAllGather::release() noexcept {
  if (!ended_) link_.break_off_dropped(subject_);
  // Last, because this operation may go with it.
  const std::shared_ptr<void> owner = std::move(owner_);
}

}  // namespace kzero::detail
