// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/spare_core.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "core/hash.hpp"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace kzero::detail {
namespace {

/// Ranks of one node and one set of cores share these.
struct Cores {
  std::uint64_t place = 0;  // stands for the node and the set
  std::int64_t count = 0;
  std::int64_t threads = 0;  // of computation, of this rank
};

#ifdef __linux__
/// Of all threads together: an OpenMP run time binds each to a place of its
/// own.
cpu_set_t cores_of_process() {
  cpu_set_t all;
  CPU_ZERO(&all);
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  for (const auto& task : tasks) {
    cpu_set_t one;
    const int id = std::atoi(task.path().filename().c_str());
    if (sched_getaffinity(id, sizeof one, &one) == 0) CPU_OR(&all, &all, &one);
  }
  return all;
}
#endif

Cores cores_of_this_rank(int threads) {
  std::array<char, 256> host{};
  (void)gethostname(host.data(), host.size() - 1);
  Cores cores;
  cores.place = hash(host.data(), host.size());
  cores.count = std::thread::hardware_concurrency();
  cores.threads = threads;
#ifdef __linux__
  const cpu_set_t set = cores_of_process();
  if (CPU_COUNT(&set) > 0) {
    cores.place = hash(&set, sizeof set, cores.place);
    cores.count = CPU_COUNT(&set);
  }
#endif
  return cores;
}

}  // namespace

void use_cores_of_process([[maybe_unused]] std::thread& thread) noexcept {
#ifdef __linux__
  try {
    const cpu_set_t set = cores_of_process();
    if (CPU_COUNT(&set) > 0)
      (void)pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
  } catch (...) {
    // Then it stays where it is.
  }
#endif
}

bool every_rank_has_a_spare_core(Communicator& communicator, int threads) {
  const Cores mine = cores_of_this_rank(threads);
  std::vector<Cores> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&mine, sizeof mine, all.data(), {"optimizer set-up"});
  // One place after another would take ranks * places; each rank looks at its
  // own, and all of them tell.
  std::int64_t wanted = 0;
  for (const Cores& other : all)
    if (other.place == mine.place) wanted += other.threads + 1;
  std::int64_t enough = wanted <= mine.count ? 1 : 0;
  communicator.all_reduce({&enough, 1}, Extremum::minimum,
                          {"optimizer set-up"});
  return enough != 0;
}

}  // namespace kzero::detail
