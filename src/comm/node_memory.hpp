// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Memory of this rank that the other ranks of its node can read, and theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/health.hpp"
#include "comm/shared_memory.hpp"

namespace kzero::detail {

/// Where bytes of a rank lie, in words that its node understands.
struct NodeAddress {
  std::uint64_t region = 0;  // number, in its process; 0 where it is common
  std::int64_t offset = 0;
  SharedMemory::Handle memory;  // of the region
};

/// One allocation of this rank, and what peers have used together with it: that
/// is mapped as long as this lives.
struct NodeRegion {
  SharedMemory memory;
  std::uint64_t number = 0;
  bool is_common = false;  // to the ranks of the node
  std::mutex mutex;
  std::map<std::pair<int, std::uint64_t>, SharedMemory> peers;
};

/// All allocations of this rank that a communicator and its duplicates have
/// made. Any thread may call it.
class NodeMemory : public std::enable_shared_from_this<NodeMemory> {
 public:
  /// processes: of the ranks of the node.
  explicit NodeMemory(std::vector<std::int64_t> processes)
      : processes_(std::move(processes)) {}

  /// Leaked when health says that peers may still write at the end of its life.
  /// Throws Error.
  std::shared_ptr<void> allocate(std::int64_t bytes,
                                 std::shared_ptr<const Health> health);

  /// Takes memory over that all ranks of the node have opened.
  std::shared_ptr<void> take_common(SharedMemory memory,
                                    std::shared_ptr<const Health> health);

  /// The region that bytes from data on lie in; null for other memory.
  std::shared_ptr<NodeRegion> find(const void* data, std::int64_t bytes);

  /// False for no bytes, whose address may be that of the memory behind.
  bool is_common(const void* data, std::int64_t bytes) {
    const std::shared_ptr<NodeRegion> region = find(data, bytes);
    return bytes > 0 && region != nullptr && region->is_common;
  }

  static NodeAddress address(const NodeRegion& region, const void* data);

  /// What a peer's address is here; mapped together with a region of this
  /// rank's, which may be the same memory. Throws Error.
  const std::byte* open(NodeRegion& with, int peer, const NodeAddress& address);

 private:
  std::shared_ptr<void> take(std::shared_ptr<NodeRegion> region,
                             std::shared_ptr<const Health> health);
  void forget(const std::byte* data) noexcept;

  std::vector<std::int64_t> processes_;
  std::mutex mutex_;
  // By the first byte.
  std::map<const std::byte*, std::shared_ptr<NodeRegion>, std::less<>> regions_;
};

}  // namespace kzero::detail
