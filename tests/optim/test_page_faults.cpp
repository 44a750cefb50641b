// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// From the third step on, a step touches no page for the first time and takes
// no memory: what it needs it has.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "comm/node_seats.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

constexpr std::int64_t elements = std::int64_t{12} << 20;
constexpr int parameters = 12;

/// Of this process.
std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

/// MPI has memory of its own for messages that come before they are asked for,
/// which is a matter of time: what happens in its calls is not counted.
std::int64_t faults_in_mpi = 0;

template <class Call>
int in_mpi(Call&& call) {
  const std::int64_t before = page_faults();
  const int code = call();
  faults_in_mpi += page_faults() - before;
  return code;
}

}  // namespace
}  // namespace kzero::test

extern "C" {

int MPI_Isend(const void* data, int count, MPI_Datatype type, int peer, int tag,
              MPI_Comm comm, MPI_Request* request) {
  return kzero::test::in_mpi(
      [&] { return PMPI_Isend(data, count, type, peer, tag, comm, request); });
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int peer, int tag,
              MPI_Comm comm, MPI_Request* request) {
  return kzero::test::in_mpi(
      [&] { return PMPI_Irecv(data, count, type, peer, tag, comm, request); });
}

int MPI_Testsome(int count, MPI_Request requests[], int* ended, int indices[],
                 MPI_Status statuses[]) {
  return kzero::test::in_mpi(
      [&] { return PMPI_Testsome(count, requests, ended, indices, statuses); });
}

}  // extern "C"

namespace kzero::test {
namespace {

/// Pages that this process has touched of the memory in which the ranks of a
/// node announce operations: all that it shares but for buckets, which are
/// larger.
std::int64_t pages_of_seats() {
  std::int64_t pages = 0;
  bool is_seats = false;
  std::ifstream maps("/proc/self/smaps");
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const auto begin = std::strtoll(line.c_str(), &end, 16);
    if (*end == '-' && end != line.c_str())
      is_seats = line.find("/memfd:kzero") != std::string::npos &&
                 std::strtoll(end + 1, nullptr, 16) - begin < 1 << 20;
    else if (is_seats && line.rfind("Rss:", 0) == 0)
      pages += std::stoll(line.substr(4)) * 1024 / sysconf(_SC_PAGESIZE);
  }
  return pages;
}

/// Faults of a step.
struct Faults {
  template <class Step>
  explicit Faults(Step&& step) {
    const std::int64_t seats_before = pages_of_seats();
    faults_in_mpi = 0;
    const std::int64_t before = page_faults();
    step();
    all = page_faults() - before - faults_in_mpi;
    of_seats = pages_of_seats() - seats_before;
  }

  std::int64_t all = 0;
  std::int64_t of_seats = 0;
};

/// Pages of this process's address space.
std::int64_t mapped_pages() {
  std::int64_t pages = -1;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

class PageFaults : public testing::TestWithParam<std::tuple<Backend, double>> {
};

TEST_P(PageFaults, AStepHasNone) {
  int looks_for_them = 0;
  std::ifstream("/proc/sys/kernel/numa_balancing") >> looks_for_them;
  if (looks_for_them != 0)
    GTEST_SKIP() << "the kernel makes faults to see who uses which page";

  const auto [backend, clip_norm] = GetParam();
  ParameterSet model;
  for (int i = 0; i < parameters; ++i)
    model.add(detail::concat("w", i), {elements / parameters},
              typed(DType::bfloat16));
  OptimizerOptions options;
  options.plan.bucket_bytes = 4 * elements / parameters;
  if (clip_norm > 0.0) options.clip_norm = clip_norm;
  ShardedOptimizer optimizer(world(backend), model, options);
  const ExecutionSpace space;
  const auto step = [&] {
    optimizer.zero_gradients(space);
    for (int i = parameters - 1; i >= 0; --i) optimizer.mark_ready({i}, space);
    optimizer.step();
  };
  const auto operations = 2 * std::ssize(optimizer.plan().buckets());
  ASSERT_GE(operations, 2 * parameters);

  for (int i = 0; i < 2; ++i) step();
  const std::int64_t pages = mapped_pages();
  for (int i = 2; i < 10; ++i) {
    const Faults faults(step);
    // Slots take turns: each is touched for the first time in the first round.
    const bool is_first_round =
        i * operations < std::int64_t(detail::NodeSeat::slots);
    EXPECT_EQ(faults.all - (is_first_round ? faults.of_seats : 0), 0)
        << "step " << i;
  }
  if (backend != Backend::mpi) {
    EXPECT_EQ(mapped_pages(), pages);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, PageFaults,
                         testing::Combine(testing::Values(Backend::automatic,
                                                          Backend::mpi),
                                          testing::Values(0.0, 1.0)));

}  // namespace
}  // namespace kzero::test
