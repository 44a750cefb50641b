// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the library has to say beside errors goes to a handler of the
// caller's. There is none by default: the library is silent.
#pragma once

#include <functional>
#include <string_view>

namespace kzero {

enum class LogLevel { information, warning };

using LogHandler = std::function<void(LogLevel, std::string_view message)>;

/// Installs the handler for this process; an empty one silences the library.
/// Thread-safe. The handler must not throw; several threads may call it at
/// once, and a call under way may end after it was replaced.
void set_log_handler(LogHandler handler);

}  // namespace kzero
