// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A program that does things in the wrong order: kzero before MPI_Init and
// after MPI_Finalize, and communicators that outlive MPI. It must get
// exceptions and end well. Prints what went wrong.
#include <mpi.h>

#include <cstdio>
#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <memory>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}

bool is_refused(kzero::Backend backend, const char* advice) {
  try {
    kzero::make_communicator(MPI_COMM_WORLD, {backend});
  } catch (const kzero::InvalidArgument& error) {
    return std::string(error.what()).find(advice) != std::string::npos;
  }
  return false;
}

/// Works without MPI, and does not look at the communicator.
bool self_works() {
  const auto self =
      kzero::make_communicator(MPI_COMM_NULL, {kzero::Backend::self});
  self->barrier({});
  return self->size() == 1;
}

}  // namespace

int main(int argc, char** argv) {
  using kzero::Backend;
  expect(is_refused(Backend::automatic, "MPI_Init_thread"),
         "automatic before MPI_Init");
  expect(is_refused(Backend::mpi, "MPI_Init_thread"), "mpi before MPI_Init");
  expect(self_works(), "self before MPI_Init");

  MPI_Init(&argc, &argv);
  auto unused = kzero::make_communicator(MPI_COMM_WORLD, {Backend::mpi});
  auto used = kzero::make_communicator(MPI_COMM_WORLD, {Backend::mpi});
  used->barrier({});
  const auto memory = used->allocate(1000);

  // Messages under way when MPI ends, and dropped after that.
  auto broken = kzero::make_communicator(MPI_COMM_WORLD, {Backend::mpi});
  std::vector<float> bucket(static_cast<std::size_t>(100 * broken->size()));
  kzero::GatherArguments arguments;
  arguments.bucket = bucket.data();
  arguments.shards = kzero::ShardTable::uniform(broken->size(), 100);
  kzero::Ticket ticket = broken->start_all_gather(arguments);
  // By now every message has come, so that MPI itself has nothing to wait for.
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();

  unused.reset();
  used.reset();
  ticket.reset();
  broken.reset();
  expect(is_refused(Backend::automatic, "MPI_Finalize"),
         "automatic after MPI_Finalize");
  expect(self_works(), "self after MPI_Finalize");
  return failures == 0 ? 0 : 1;
}
