// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "agreement.hpp"

#include <cstdint>

namespace digits {

void agree(kzero::Communicator& communicator, std::string problem) {
  auto size = static_cast<std::int64_t>(problem.size());
  communicator.broadcast(&size, sizeof size, 0, {"agreement"});
  if (size == 0) return;
  problem.resize(static_cast<std::size_t>(size));
  communicator.broadcast(problem.data(), size, 0, {"agreement"});
  throw UserError(problem);
}

}  // namespace digits
