// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One message from every rank of a communicator to every other one.
#pragma once

#include <mpi.h>

#include <vector>

#include "comm/mpi_link.hpp"
#include "comm/mpi_messages.hpp"

namespace kzero::detail {

class Meeting {
 public:
  /// Posts the messages. They match no others, whatever has happened on the
  /// communicator before.
  explicit Meeting(MPI_Comm communicator);

  /// True when all others have come, or when that can no longer be found out.
  bool has_ended() noexcept;

 private:
  void post();

  MpiLink link_;
  MessageSet messages_;
  std::vector<char> received_;
  char sent_ = 0;
  bool ended_ = false;
};

}  // namespace kzero::detail
