// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How the library speaks to the handler of set_log_handler.
#pragma once

#include <kzero/log.hpp>
#include <string_view>

namespace kzero::detail {

/// Whether anybody listens: ask before building a costly message.
bool log_enabled() noexcept;

/// Gives the message to the handler, if there is one. Callable from any
/// thread; costs an atomic load without a handler. An exception of the handler
/// goes no further: the message counts as lost, and the next one that gets
/// through is preceded by a warning that tells of it.
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace kzero::detail
