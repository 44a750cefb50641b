// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.hpp"

namespace kzero::detail {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override { set_log_handler({}); }

  LogHandler recorder() {
    return [this](LogLevel level, std::string_view message) {
      seen.emplace_back(level, message);
    };
  }

  std::vector<std::pair<LogLevel, std::string>> seen;
};

TEST_F(Log, IsSilentByDefault) {
  EXPECT_FALSE(log_enabled());
  log(LogLevel::warning, "nobody listens");
}

TEST_F(Log, TheHandlerGetsLevelAndMessage) {
  set_log_handler(recorder());
  EXPECT_TRUE(log_enabled());

  log(LogLevel::information, "one");
  log(LogLevel::warning, std::string("\0two", 4));

  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], std::pair(LogLevel::information, std::string("one")));
  EXPECT_EQ(seen[1], std::pair(LogLevel::warning, std::string("\0two", 4)));
}

TEST_F(Log, AnEmptyHandlerSilences) {
  set_log_handler(recorder());
  set_log_handler({});
  EXPECT_FALSE(log_enabled());
  log(LogLevel::warning, "unheard");
  EXPECT_TRUE(seen.empty());
}

TEST_F(Log, ReplacingDestroysTheFormerHandler) {
  const auto token = std::make_shared<int>(0);
  set_log_handler([token](LogLevel, std::string_view) {});
  EXPECT_EQ(token.use_count(), 2);
  set_log_handler(recorder());
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(Log, ExceptionsStayInsideAndAreToldOf) {
  bool broken = true;
  set_log_handler([&](LogLevel level, std::string_view message) {
    if (broken) throw std::runtime_error("no room");
    seen.emplace_back(level, message);
  });
  log(LogLevel::information, "lost");
  log(LogLevel::information, "lost too");

  broken = false;
  log(LogLevel::information, "heard");
  log(LogLevel::information, "heard too");

  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].first, LogLevel::warning);
  EXPECT_EQ(seen[0].second.find("2 log messages lost"), 0u) << seen[0].second;
  EXPECT_EQ(seen[1].second, "heard");
  EXPECT_EQ(seen[2].second, "heard too");
}

TEST_F(Log, AHandlerMayLogAndMaySetAnother) {
  set_log_handler([this](LogLevel, std::string_view message) {
    if (message == "inner") return;
    log(LogLevel::information, "inner");
    set_log_handler(recorder());
  });
  log(LogLevel::information, "outer");
  log(LogLevel::information, "next");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].second, "next");
}

TEST_F(Log, WorksFromThreadsWhileHandlersChange) {
  constexpr int threads = 4;
  constexpr int messages = 2000;
  std::atomic<int> first = 0;
  std::atomic<int> second = 0;
  const LogHandler handlers[] = {[&](LogLevel, std::string_view) { ++first; },
                                 [&](LogLevel, std::string_view) { ++second; }};
  set_log_handler(handlers[0]);

  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([] {
      for (int i = 0; i < messages; ++i) log(LogLevel::information, "x");
    });
  for (int i = 0; i < messages; ++i) set_log_handler(handlers[i % 2]);
  for (std::thread& worker : workers) worker.join();

  EXPECT_EQ(first + second, threads * messages);
}

}  // namespace
}  // namespace kzero::detail
