// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A training that saves every step and is killed somewhere, and what looks at
// its folder afterwards. test_crashes starts it.
//   crash_worker save FOLDER ENGINE WAY   way: wait, or behind
//   crash_worker check FOLDER
// KZERO_TEST_KILL names a system call, which of them, and whether rank 0 is
// killed before or after it: "rename 1 before". They count from the end of the
// first save on.
#include <mpi.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <kzero/kzero.hpp>
#include <sstream>
#include <string>

#include "io/checkpoint_model.hpp"
#include "io/optimizer_snapshot.hpp"

namespace {

/// When to be killed.
struct Plan {
  std::string call;
  int number = 0;
  bool before = true;
};

Plan plan;
bool armed = false;
int calls = 0;

template <class F>
auto watched(const char* name, F&& call) {
  const bool is_it = armed && plan.call == name && ++calls == plan.number;
  if (is_it && plan.before) kill(getpid(), SIGKILL);
  const auto result = call();
  if (is_it) kill(getpid(), SIGKILL);
  return result;
}

}  // namespace

extern "C" {

int rename(const char* from, const char* to) {
  return watched("rename", [&] {
    return static_cast<int>(syscall(SYS_renameat2, -100, from, -100, to, 0U));
  });
}

int fsync(int file) {
  return watched("fsync",
                 [&] { return static_cast<int>(syscall(SYS_fsync, file)); });
}

int ftruncate(int file, off_t size) noexcept {
  return watched("ftruncate", [&] {
    return static_cast<int>(syscall(SYS_ftruncate, file, size));
  });
}

ssize_t pwrite(int file, const void* data, size_t size, off_t place) {
  return watched(
      "pwrite", [&] { return syscall(SYS_pwrite64, file, data, size, place); });
}

ssize_t pwritev(int file, const iovec* parts, int count, off_t place) {
  return watched("pwritev", [&] {
    return syscall(SYS_pwritev, file, parts, count, place, 0L);
  });
}

}  // extern "C"

namespace kzero::test {
namespace {

ShardedOptimizer make_trained(std::int64_t steps) {
  ShardedOptimizer optimizer =
      make_varied(make_communicator(MPI_COMM_WORLD), 600);
  write_start(optimizer, 1);
  train(optimizer, static_cast<int>(steps));
  return optimizer;
}

std::filesystem::path file_of(const std::filesystem::path& folder,
                              std::int64_t step) {
  return folder / ("run-" + std::to_string(step) + ".h5");
}

void save(const std::filesystem::path& folder, Engine engine, bool behind) {
  ShardedOptimizer optimizer = make_trained(0);
  const int rank = optimizer.communicator()->rank();
  std::ofstream(folder / ("pid." + std::to_string(rank))) << getpid() << "\n";
  load_latest(optimizer, folder);
  const auto completed = [&](std::int64_t step) {
    if (rank == 0)
      std::ofstream(folder / "completed", std::ios::app) << step << "\n";
    armed = rank == 0 && !plan.call.empty();
  };
  SaveTicket ticket;
  std::int64_t saved = 0;
  while (true) {  // until it is killed
    train(optimizer, 1);
    const CheckpointOptions options{.engine = engine, .keep = 3};
    const auto path = file_of(folder, optimizer.steps());
    if (behind) {
      // The next one completes the one before.
      SaveTicket next = save_checkpoint_async(optimizer, path, options);
      if (saved > 0 && ticket.error().empty()) completed(saved);
      ticket = std::move(next);
      saved = optimizer.steps();
    } else {
      save_checkpoint(optimizer, path, options);
      completed(optimizer.steps());
    }
  }
}

int check(const std::filesystem::path& folder) {
  ShardedOptimizer optimizer = make_trained(0);
  const auto content = load_latest(optimizer, folder);
  const std::int64_t step = content ? content->step : 0;
  ShardedOptimizer expected = make_trained(step);
  if (!equal(snapshot(optimizer, MPI_COMM_WORLD),
             snapshot(expected, MPI_COMM_WORLD))) {
    std::printf("wrong: other bits after %lld steps\n",
                static_cast<long long>(step));
    return 1;
  }
  if (optimizer.communicator()->rank() == 0)
    std::ofstream(folder / "loaded") << step << "\n";
  return 0;
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "check" && argc == 3) return check(argv[2]);
  if (what != "save" || argc != 5) return 2;
  if (const char* text = std::getenv("KZERO_TEST_KILL")) {
    std::string when;
    std::istringstream(text) >> plan.call >> plan.number >> when;
    plan.before = when == "before";
  }
  save(argv[2],
       std::string(argv[3]) == "gather" ? Engine::gather : Engine::direct,
       std::string(argv[4]) == "behind");
  return 0;
}

}  // namespace
}  // namespace kzero::test

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  int code = 1;
  try {
    code = kzero::test::run(argc, argv);
  } catch (const std::exception& error) {
    std::printf("wrong: %s\n", error.what());
  }
  Kokkos::finalize();
  MPI_Finalize();
  return code;
}
