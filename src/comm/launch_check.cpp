// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/launch_check.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

// The number that the whole text is; 0 when it is none.
long number_in(const char* text) {
  if (text == nullptr) return 0;
  long number = 0;
  const char* end = text + std::strlen(text);
  const auto result = std::from_chars(text, end, number);
  return result.ec == std::errc() && result.ptr == end ? number : 0;
}

}  // namespace

std::optional<std::string> lonely_rank_warning() {
  // What the launcher sets comes before what the batch system sets.
  for (const char* name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    const long number = number_in(std::getenv(name));
    if (number <= 1) continue;
    return concat(
        name, " is ", number, " but the communicator has 1 rank: if ", number,
        " ranks should train together, the program was started by the "
        "launcher of another MPI or with the wrong PMI (try srun --mpi=pmi2 or "
        "the mpiexec of the MPI that it is linked with); harmless if the ranks "
        "were split on purpose");
  }
  return std::nullopt;
}

}  // namespace kzero::detail
