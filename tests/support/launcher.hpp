// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What MPICH's launcher has to hear of a process.
#pragma once

#include <unistd.h>

#include <array>
#include <string_view>

namespace kzero::test {

/// The launcher takes a process for a failed one that ends before it says this,
/// as MPI_Finalize does. launcher: what PMI_FD in the environment says.
inline void tell_launcher_of_the_end(int launcher) {
  constexpr std::string_view words = "cmd=finalize\n";
  std::array<char, 256> answer;
  if (write(launcher, words.data(), words.size()) > 0)
    (void)!read(launcher, answer.data(), answer.size());
}

}  // namespace kzero::test
