// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the library logs, as long as it lives.
#pragma once

#include <kzero/log.hpp>
#include <memory>
#include <string>
#include <vector>

namespace kzero::test {

/// For tests with one thread.
class LoggedWords {
 public:
  LoggedWords() {
    set_log_handler([words = words_](LogLevel level, std::string_view text) {
      if (level == LogLevel::warning) words->emplace_back(text);
    });
  }
  ~LoggedWords() { set_log_handler({}); }
  LoggedWords(const LoggedWords&) = delete;
  LoggedWords& operator=(const LoggedWords&) = delete;

  const std::vector<std::string>& warnings() const { return *words_; }

 private:
  std::shared_ptr<std::vector<std::string>> words_ =
      std::make_shared<std::vector<std::string>>();
};

}  // namespace kzero::test
