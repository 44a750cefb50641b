// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/at_finalize.hpp"

#include <mpi.h>

#include <mutex>
#include <vector>

#include "comm/check_mpi.hpp"

namespace kzero::detail {
namespace {

using Call = void (*)();

struct Calls {
  std::mutex mutex;
  std::vector<Call> left;
};

// Never destroyed: MPI may end when objects of static storage are gone.
Calls& calls() {
  static auto& instance = *new Calls;
  return instance;
}

void make_calls() noexcept {
  std::vector<Call> all;
  {
    const std::lock_guard lock(calls().mutex);
    all.swap(calls().left);
  }
  for (auto call = all.rbegin(); call != all.rend(); ++call) (*call)();
}

int make_calls_late(MPI_Comm, int, void*, void*) {
  make_calls();
  return MPI_SUCCESS;
}

// MPI_Finalize begins with the attributes of MPI_COMM_SELF, the last first.
void set_attribute() {
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, make_calls_late, &key,
                                   nullptr),
            "MPI_Comm_create_keyval");
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr),
            "MPI_Comm_set_attr");
  check_mpi(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
}

}  // namespace

void call_at_finalize(Call call) {
  static std::once_flag once;
  std::call_once(once, set_attribute);
  const std::lock_guard lock(calls().mutex);
  calls().left.push_back(call);
}

}  // namespace kzero::detail

// An attribute comes too late for a thread: MPICH takes no locks any more when
// it deletes them, and fails on one that a thread's call still holds. Weak, so
// that a profiling tool's takes its place; then the attribute has to do.
extern "C" [[gnu::weak]] int MPI_Finalize() {
  kzero::detail::make_calls();
  return PMPI_Finalize();
}
