// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/small_collectives.hpp"

#include <algorithm>

#include "comm/argument_checks.hpp"

namespace kzero::detail {

SmallCollectives::SmallCollectives(MpiLink& link)
    : link_(link),
      messages_(link),
      other_messages_(link),
      work_space_(link.health()) {}

void SmallCollectives::all_gather(const void* send, std::int64_t bytes,
                                  void* receive, const Subject& subject) {
  Activity activity = link_.begin(Collective::small_all_gather, subject);
  if (bytes == 0) return;
  activity.relayed = link_.size() > 2;

  // Block i of the work space is that of rank + i. A round doubles the blocks
  // that are there.
  const int size = link_.size();
  std::byte* blocks = work_space_.reserve(size * bytes);
  copy_bytes(blocks, send, bytes);
  for (int distance = 1; distance < size; distance *= 2) {
    const std::int64_t count = std::min(distance, size - distance) * bytes;
    messages_.begin(activity);
    messages_.receive(blocks + distance * bytes, count,
                      link_.neighbour(distance));
    messages_.send(blocks, count, link_.neighbour(-distance));
    messages_.wait(Until::ended);
  }

  auto* out = static_cast<std::byte*>(receive);
  const std::int64_t head = link_.rank() * bytes;
  const std::int64_t tail = (size - link_.rank()) * bytes;
  copy_bytes(out + head, blocks, tail);
  copy_bytes(out, blocks + tail, head);
}

void SmallCollectives::barrier(const Subject& subject) {
  Activity activity = link_.begin(Collective::barrier, subject);
  activity.relayed = link_.size() > 2;
  for (int distance = 1; distance < link_.size(); distance *= 2) {
    messages_.begin(activity);
    messages_.receive(nullptr, 0, link_.neighbour(-distance));
    messages_.send(nullptr, 0, link_.neighbour(distance));
    messages_.wait(Until::ended);
  }
}

void SmallCollectives::broadcast(void* data, std::int64_t bytes, int root,
                                 const Subject& subject,
                                 std::span<const int> ranks) {
  Activity activity = link_.begin(Collective::broadcast, subject, root);
  activity.relayed = ranks.size() > 2;
  const auto place_in = [&](int rank) {
    return std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  };
  const std::ptrdiff_t size = std::ssize(ranks);
  const std::ptrdiff_t self = place_in(link_.rank());
  if (self == size || ranks[static_cast<std::size_t>(self)] != link_.rank())
    return;
  constexpr std::int64_t largest_piece = std::int64_t{1} << 20;
  const std::int64_t piece = std::min(largest_piece, link_.message_bytes());
  const std::int64_t pieces = (bytes + piece - 1) / piece;

  // Ranks are counted from root. The parent of a rank is the rank without its
  // lowest bit; its children have one more bit below that.
  const std::ptrdiff_t place = (self - place_in(root) + size) % size;
  const auto further = [&](std::ptrdiff_t distance) {
    return ranks[static_cast<std::size_t>((self + distance + size) % size)];
  };
  std::ptrdiff_t lowest = 1;
  while (lowest < size && (place & lowest) == 0) lowest *= 2;

  const auto part = [&](std::int64_t k) {
    return static_cast<std::byte*>(data) + k * piece;
  };
  const auto part_bytes = [&](std::int64_t k) {
    return std::min(piece, bytes - k * piece);
  };
  MessageSet* const sets[2] = {&messages_, &other_messages_};
  const auto expect = [&](std::int64_t k) {
    MessageSet& messages = *sets[k % 2];
    messages.wait(Until::ended);
    messages.begin(activity);
    if (place != 0) {
      messages.receive(part(k), part_bytes(k), further(-lowest));
    }
  };

  // The next piece arrives while this one is passed on.
  if (pieces > 0) expect(0);
  for (std::int64_t k = 0; k < pieces; ++k) {
    if (k + 1 < pieces) expect(k + 1);
    MessageSet& messages = *sets[k % 2];
    messages.wait(Until::received);
    for (std::ptrdiff_t bit = lowest / 2; bit > 0; bit /= 2) {
      if (place + bit < size) {
        messages.send(part(k), part_bytes(k), further(bit));
      }
    }
  }
  for (MessageSet* messages : sets) messages->wait(Until::ended);
}

namespace {

// Enough to keep the wire busy, and few enough for ten thousand ranks.
constexpr std::size_t most_messages = 64;

}  // namespace

void SmallCollectives::gather(const void* send, void* receive,
                              const ShardTable& shards,
                              std::int64_t element_bytes, int root,
                              const Subject& subject) {
  messages_.begin(link_.begin(Collective::gather, subject, root),
                  most_messages);
  const std::int64_t own = shards.size(link_.rank()) * element_bytes;
  if (link_.rank() == root) {
    auto* out = static_cast<std::byte*>(receive);
    for (int distance = 1; distance < link_.size(); ++distance) {
      const int peer = link_.neighbour(distance);
      const std::int64_t bytes = shards.size(peer) * element_bytes;
      if (bytes == 0) continue;
      messages_.receive(out + shards.range(peer).begin * element_bytes, bytes,
                        peer);
    }
    if (own > 0) {
      copy_bytes(out + shards.range(root).begin * element_bytes, send, own);
    }
  } else if (own > 0) {
    messages_.send(send, own, root);
  }
  messages_.wait(Until::ended);
}

void SmallCollectives::scatter(const void* send, void* receive,
                               const ShardTable& shards,
                               std::int64_t element_bytes, int root,
                               const Subject& subject) {
  messages_.begin(link_.begin(Collective::scatter, subject, root),
                  most_messages);
  const std::int64_t own = shards.size(link_.rank()) * element_bytes;
  if (link_.rank() == root) {
    const auto* in = static_cast<const std::byte*>(send);
    for (int distance = 1; distance < link_.size(); ++distance) {
      const int peer = link_.neighbour(distance);
      const std::int64_t bytes = shards.size(peer) * element_bytes;
      if (bytes == 0) continue;
      messages_.send(in + shards.range(peer).begin * element_bytes, bytes,
                     peer);
    }
    if (own > 0) {
      copy_bytes(receive, in + shards.range(root).begin * element_bytes, own);
    }
  } else if (own > 0) {
    messages_.receive(receive, own, root);
  }
  messages_.wait(Until::ended);
}

}  // namespace kzero::detail
