// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/root_status.hpp"

#include <cstdint>
#include <exception>
#include <kzero/error.hpp>

namespace kzero::detail {

bool RootStatus::attempt(const std::function<void()>& f) {
  if (!is_root()) return true;
  if (error_.has_value()) return false;
  try {
    f();
    return true;
  } catch (const std::exception& error) {
    error_ = error.what();
  } catch (...) {
    error_ = "an exception of unknown type";
  }
  return false;
}

void RootStatus::share(const char* note) {
  std::string message = error_.value_or("");
  std::int64_t size =
      error_.has_value() ? static_cast<std::int64_t>(message.size()) : -1;
  const Subject subject{operation_};
  communicator_.broadcast(&size, sizeof(size), root_, subject);
  if (size < 0) return;
  message.resize(static_cast<std::size_t>(size));
  communicator_.broadcast(message.data(), size, root_, subject);
  throw CheckpointError(message + note);
}

}  // namespace kzero::detail
