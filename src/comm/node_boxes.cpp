// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_boxes.hpp"

#include <algorithm>

#include "comm/argument_checks.hpp"

namespace kzero::detail {

void NodeBoxes::all_gather(const void* send, std::int64_t bytes, void* receive,
                           const Subject& subject) {
  NodeRecord record;
  record.number = traffic_.count_call();
  record.call = NodeCall::small_all_gather;
  record.total = bytes;
  const auto* from = static_cast<const std::byte*>(send);
  auto* to = static_cast<std::byte*>(receive);
  for (std::int64_t first = 0; first < bytes; first += NodeBox::size)
    exchange(record, from + first, std::min(NodeBox::size, bytes - first),
             to + first, bytes, subject);
}

void NodeBoxes::barrier(const Subject& subject) {
  NodeRecord record;
  record.number = traffic_.count_call();
  record.call = NodeCall::barrier;
  exchange(record, nullptr, 0, nullptr, 0, subject);
}

// The box before last may be filled again: a peer has read it when it has
// filled the last one, and that was waited for.
void NodeBoxes::exchange(const NodeRecord& record, const std::byte* send,
                         std::int64_t count, std::byte* receive,
                         std::int64_t stride, const Subject& subject) {
  const std::uint64_t which = filled_++ % 2;
  NodeSeat& mine = traffic_.seats().mine();
  mine.box[which].record = record;
  copy_bytes(mine.box[which].bytes.data(), send, count);
  mine.boxes_posted.store(filled_, std::memory_order_release);
  traffic_.seats().ring();
  traffic_.wait(subject, [&](int peer) {
    return traffic_.seats().seat(peer).boxes_posted.load(
               std::memory_order_acquire) < filled_;
  });
  for (int peer = 0; peer < traffic_.size(); ++peer) {
    const NodeBox& box = traffic_.seats().seat(peer).box[which];
    traffic_.require_same(box.record, record, subject, peer);
    copy_bytes(receive + peer * stride, box.bytes.data(), count);
  }
}

}  // namespace kzero::detail
