// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The choice of the instruction set.
#include <atomic>
#include <cstdlib>
#include <kzero/error.hpp>
#include <string>
#include <vector>

#include "kernels/host/host_kernels.hpp"
#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

// Narrow to wide.
std::vector<const HostKernels*> find_usable() {
  std::vector<const HostKernels*> usable = {&host_kernels_generic};
#ifdef KZERO_HAVE_AVX2
  if (__builtin_cpu_supports("avx2")) usable.push_back(&host_kernels_avx2);
#endif
#ifdef KZERO_HAVE_AVX512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    usable.push_back(&host_kernels_avx512);
#endif
  return usable;
}

const std::vector<const HostKernels*>& usable() {
  static const auto list = find_usable();
  return list;
}

const HostKernels& find(std::string_view name) {
  std::string known;
  for (const HostKernels* kernels : usable()) {
    if (kernels->name == name) return *kernels;
    known += known.empty() ? "" : ", ";
    known += kernels->name;
  }
  throw InvalidArgument("instruction set '" + std::string(name) +
                        "' (KZERO_INSTRUCTION_SET) is not available on this "
                        "processor or in this build: use one of " +
                        known);
}

const HostKernels& choose() {
  const char* name = std::getenv("KZERO_INSTRUCTION_SET");
  return name != nullptr && *name != '\0' ? find(name) : *usable().back();
}

std::atomic<const HostKernels*> in_use = nullptr;

}  // namespace

const HostKernels& host_kernels() {
  const HostKernels* kernels = in_use.load(std::memory_order_acquire);
  if (kernels == nullptr) {
    kernels = &choose();
    in_use.store(kernels, std::memory_order_release);
  }
  return *kernels;
}

std::span<const std::string_view> instruction_sets() {
  static const auto names = [] {
    std::vector<std::string_view> list;
    for (const HostKernels* kernels : usable()) list.push_back(kernels->name);
    return list;
  }();
  return names;
}

void use_instruction_set(std::string_view name) {
  in_use.store(&find(name), std::memory_order_release);
}

std::string_view instruction_set_name() { return host_kernels().name; }

void ordered_sum(std::span<const Contribution> parts, DType dtype,
                 std::int64_t count, void* out) {
  TileStatistics unused;
  const bool wide = dtype == DType::float64;
  host_kernels().sum[static_cast<std::size_t>(dtype)][wide ? 1 : 0](
      {parts.data(), parts.size(), 0, count, 1.0, out}, unused);
}

}  // namespace kzero::detail
