// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One rank is killed, or throws an exception, in the middle of something: the
// argument says of what. The others are told by a CommunicationError within the
// timeout, destroying what they have waits for nobody, and no shared memory is
// left. Groups of 2, 3 and 4 ranks at a time, each with another rank and
// another point, since all of them wait for a timeout.
//
// Launchers end all ranks where a process of theirs is killed, so each rank is
// a child of the process that they know.
#include <mpi.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <kzero/kzero.hpp>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "support/counting_communicator.hpp"
#include "support/launcher.hpp"

namespace {

using namespace kzero;

constexpr std::chrono::milliseconds timeout(1000);
// Of a wait that is bounded, however busy the machine is.
constexpr std::chrono::milliseconds at_most = 10 * timeout;

enum class Event { allocation, collective, update, read };
enum class End { killed, thrown };

struct OwnException : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What becomes of this rank, and after how many events.
struct Fate {
  Event event = Event::allocation;
  End end = End::killed;
  std::atomic<int> left = 0;  // never, where it is 0
};
Fate fate;

void reach(Event event) {
  if (event != fate.event || fate.left == 0 || --fate.left != 0) return;
  if (fate.end == End::killed) std::raise(SIGKILL);
  throw OwnException("of this rank's own");
}

}  // namespace

// Memory has been made by then, and not been mapped.
extern "C" int ftruncate(int descriptor, off_t bytes) noexcept {
  reach(Event::allocation);
  return static_cast<int>(syscall(SYS_ftruncate, descriptor, bytes));
}

namespace {

/// Sgd on which a rank can end.
struct Descent {
  static constexpr std::string_view name = "descent";
  static constexpr std::array<std::string_view, 0> state = {};
  double learning_rate = 0.5;
  static constexpr Hyperparameter<Descent> hyperparameters[] = {
      {"learning_rate", &Descent::learning_rate}};

  template <class T>
  void operator()(T g, T& p, T*) const {
    reach(Event::update);
    p -= T(learning_rate) * g;
  }
};

struct Case {
  Event event = Event::allocation;
  End end = End::killed;
  /// After so many, in the groups of 2, 3 and 4 ranks.
  std::array<int, 3> points = {1, 1, 1};
  std::array<int, 3> ranks = {1, 0, 2};
  Schedule schedule = Schedule::at_step;
  GatherMode gather = GatherMode::at_step;
  Progress progress = Progress::calls;
  /// What is counted begins after construction.
  bool in_step = false;
};

constexpr int parameters = 6;  // of a bucket each
constexpr std::int64_t width = 50 * 1000;

std::map<std::string, Case> all_cases() {
  const Case overlap{.event = Event::collective,
                     .points = {2, 9, 14},
                     .schedule = Schedule::after_backward,
                     .gather = GatherMode::overlapped,
                     .in_step = true};
  Case thread = overlap;
  thread.progress = Progress::thread;
  Case read = overlap;
  read.event = Event::read;
  read.points = {1, 2, 5};
  const Case step{
      .event = Event::collective, .points = {3, 7, 12}, .in_step = true};
  const auto thrown = [](Case each) {
    each.end = End::thrown;
    return each;
  };
  return {
      {"seats", {.event = Event::allocation, .ranks = {0, 0, 0}}},
      {"memory",
       {.event = Event::allocation, .points = {2, 3, 3}, .ranks = {0, 0, 0}}},
      {"construction", {.event = Event::collective, .points = {1, 2, 3}}},
      {"step", step},
      // Peers may not have opened its memory yet.
      {"first_update", {.event = Event::update, .points = {1, 1, width / 2}}},
      {"update",
       {.event = Event::update,
        .points = {1, width / 2, width},
        .in_step = true}},
      {"overlap", overlap},
      {"thread", thread},
      {"read", read},
      {"thrown_in_step", thrown(step)},
      {"thrown_in_overlap", thrown(overlap)},
      {"thrown_in_thread", thrown(thread)},
  };
}

void train(const Case& with, const std::function<void()>& arm, MPI_Comm group) {
  if (!with.in_step) arm();
  const auto communicator = std::make_shared<test::CountingCommunicator>(
      make_communicator(group, {Backend::node, timeout}),
      [] { reach(Event::collective); });
  ParameterSet set;
  for (int i = 0; i < parameters; ++i)
    set.add("p" + std::to_string(i), {width});
  OptimizerOptions options;
  options.rule = Descent();
  options.plan.bucket_bytes = width;
  options.schedule = with.schedule;
  options.gather = with.gather;
  options.progress = with.progress;
  ShardedOptimizer optimizer(communicator, set, options);
  const auto pass = [&] {
    for (std::int64_t i = 0; i < parameters; ++i) {
      reach(Event::read);
      (void)optimizer.parameter<float*>({i});
    }
    for (std::int64_t i = parameters - 1; i >= 0; --i) {
      Kokkos::deep_copy(optimizer.gradient<float*>({i}), 1.0f);
      optimizer.mark_ready({i});
    }
    optimizer.step();
  };
  pass();
  if (with.in_step) arm();
  for (int step = 0; step < 3; ++step) pass();
  optimizer.wait_parameters();
}

/// What was wrong, or nothing.
std::string run_in_group(const Case& with, MPI_Comm group, int which) {
  int rank = 0;
  MPI_Comm_rank(group, &rank);
  const auto index = static_cast<std::size_t>(which);
  const bool ends = rank == with.ranks[index];
  fate.event = with.event;
  fate.end = with.end;
  MPI_Barrier(group);
  const auto begin = std::chrono::steady_clock::now();
  std::string text = "no rank has ended";
  try {
    train(
        with, [&] { fate.left = ends ? with.points[index] : 0; }, group);
  } catch (const OwnException&) {
    text = "";
  } catch (const CommunicationError& error) {
    text = ends ? error.what() : "";
  }
  if (std::chrono::steady_clock::now() - begin > at_most)
    text += " (it took too long)";
  return text;
}

int run_rank(int argc, char** argv) {
  const Case with = all_cases().at(argc > 1 ? argv[1] : "");
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  Kokkos::initialize(argc, argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::string problem = "the test is for 9 ranks";
  if (size == 9) {
    const int which = rank < 2 ? 0 : rank < 5 ? 1 : 2;
    MPI_Comm group = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, which, rank, &group);
    problem = run_in_group(with, group, which);
    MPI_Comm_free(&group);
  }
  if (!problem.empty()) std::printf("rank %d: %s\n", rank, problem.c_str());
  std::fflush(stdout);
  // Where a rank is missing, MPI does not end.
  if (with.end == End::killed) _exit(problem.empty() ? 0 : 1);
  Kokkos::finalize();
  MPI_Finalize();
  return problem.empty() ? 0 : 1;
}
bool is_shared_memory_left() {
  for (const auto& each : std::filesystem::directory_iterator("/dev/shm"))
    if (each.path().filename().string().find("kzero") != std::string::npos) {
      std::printf("left: %s\n", each.path().c_str());
      return true;
    }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const launcher = std::getenv("PMI_FD");
  if (launcher == nullptr) {
    std::printf("left out: this is for the launcher of MPICH\n");
    return 77;
  }
  const pid_t rank = fork();
  if (rank == 0) return run_rank(argc, argv);
  int status = 0;
  if (rank < 0 || waitpid(rank, &status, 0) != rank) return 1;
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!killed && !ended) std::printf("a rank ended with status %d\n", status);
  const bool wrong = is_shared_memory_left() || !(killed || ended);
  if (all_cases().at(argv[1]).end == End::killed)
    kzero::test::tell_launcher_of_the_end(std::atoi(launcher));
  return wrong ? 1 : 0;
}
