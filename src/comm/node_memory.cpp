// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_memory.hpp"

#include <atomic>
#include <kzero/error.hpp>

#include "core/message.hpp"

namespace kzero::detail {
namespace {

// Of the process: several communicators use the same peers' memory.
std::atomic<std::uint64_t> next_number = 1;

}  // namespace

std::shared_ptr<void> NodeMemory::allocate(
    std::int64_t bytes, std::shared_ptr<const Health> health) {
  if (bytes < 0)
    throw InvalidArgument(
        concat("cannot allocate ", bytes, " bytes: give a size of 0 or more"));
  auto region = std::make_shared<NodeRegion>();
  region->memory = SharedMemory::create(bytes);
  region->number = next_number++;
  return take(std::move(region), std::move(health));
}

std::shared_ptr<void> NodeMemory::take_common(
    SharedMemory memory, std::shared_ptr<const Health> health) {
  auto region = std::make_shared<NodeRegion>();
  region->memory = std::move(memory);
  region->is_common = true;
  return take(std::move(region), std::move(health));
}

std::shared_ptr<void> NodeMemory::take(std::shared_ptr<NodeRegion> region,
                                       std::shared_ptr<const Health> health) {
  std::byte* const data = region->memory.data();
  {
    const std::lock_guard lock(mutex_);
    regions_.emplace(data, region);
  }
  return {data, [all = shared_from_this(), region = std::move(region),
                 health = std::move(health)](void* memory) noexcept {
            all->forget(static_cast<std::byte*>(memory));
            if (health->memory_at_risk()) region->memory.leak();
          }};
}

void NodeMemory::forget(const std::byte* data) noexcept {
  const std::lock_guard lock(mutex_);
  regions_.erase(data);
}

std::shared_ptr<NodeRegion> NodeMemory::find(const void* data,
                                             std::int64_t bytes) {
  const auto* const first = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  auto after = regions_.upper_bound(first);
  if (after == regions_.begin()) return nullptr;
  const auto& [begin, region] = *--after;
  if (std::less<>()(begin + region->memory.bytes(), first + bytes))
    return nullptr;
  return region;
}

NodeAddress NodeMemory::address(const NodeRegion& region, const void* data) {
  return {region.number,
          static_cast<const std::byte*>(data) - region.memory.data(),
          region.memory.handle()};
}

const std::byte* NodeMemory::open(NodeRegion& with, int peer,
                                  const NodeAddress& address) {
  if (with.is_common && address.memory.file == with.memory.handle().file)
    return with.memory.data() + address.offset;
  const std::lock_guard lock(with.mutex);
  auto [place, is_new] = with.peers.try_emplace({peer, address.region});
  if (is_new) {
    try {
      place->second =
          SharedMemory::open(processes_[static_cast<std::size_t>(peer)],
                             address.memory, SharedMemory::Access::read);
    } catch (...) {
      with.peers.erase(place);
      throw;
    }
  }
  return place->second.data() + address.offset;
}

}  // namespace kzero::detail
