// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/aligned_memory.hpp"

#include <cstdlib>
#include <kzero/error.hpp>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/huge_pages.hpp"
#include "core/message.hpp"

namespace kzero::detail {

namespace {

constexpr std::size_t cache_line = 64;

void give_back(void* memory, bool at_risk) noexcept {
  if (at_risk) {
    leak(memory);
  } else {
    free_aligned(memory);
  }
}

}  // namespace

void* allocate_aligned(std::int64_t bytes) {
  if (bytes < 0) {
    throw InvalidArgument(
        concat("cannot allocate ", bytes, " bytes: give a size of 0 or more"));
  }
  const auto size = static_cast<std::size_t>(bytes);
  const bool large = bytes >= huge_page;
  void* memory = nullptr;
  const int code =
      posix_memalign(&memory, large ? std::size_t{huge_page} : cache_line,
                     size > 0 ? size : cache_line);
  if (code != 0) {
    throw Error(concat("no memory for a communication buffer of ", bytes,
                       " bytes: use more ranks, smaller buckets or pieces"));
  }
  if (large) ask_for_huge_pages(memory, bytes);
  return memory;
}

void free_aligned(void* memory) noexcept { std::free(memory); }

void leak(void* memory) noexcept {
  try {
    static std::mutex mutex;
    static auto& leaked = *new std::vector<void*>;
    const std::lock_guard lock(mutex);
    leaked.push_back(memory);
  } catch (...) {
    // Then it is leaked all the more.
  }
}

std::shared_ptr<void> allocate_shared(std::int64_t bytes,
                                      std::shared_ptr<const Health> health) {
  return {allocate_aligned(bytes),
          [health = std::move(health)](void* memory) noexcept {
            give_back(memory, health->memory_at_risk());
          }};
}

WorkSpace::WorkSpace(std::shared_ptr<const Health> health)
    : health_(std::move(health)) {}

WorkSpace::~WorkSpace() {
  if (data_ != nullptr) give_back(data_, health_->broken());
}

std::byte* WorkSpace::reserve(std::int64_t bytes) {
  if (data_ == nullptr || bytes > capacity_) {
    // First the old one: both together may not fit.
    free_aligned(std::exchange(data_, nullptr));
    capacity_ = 0;
    data_ = allocate_aligned(bytes);
    capacity_ = bytes;
  }
  return static_cast<std::byte*>(data_);
}

}  // namespace kzero::detail
