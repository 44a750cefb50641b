// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Case 23: a training on 3 ranks that saves every step is killed, and started
// again from what it has left: always the last completed save or a newer one,
// to the bit.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

using std::chrono::milliseconds;

/// A job of mpiexec. Ends with its program.
class Job {
 public:
  explicit Job(std::vector<std::string> words) {
    words.insert(words.begin(), KZERO_TEST_MPIEXEC);
    pid_ = fork();
    if (pid_ != 0) return;
    setpgid(0, 0);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }

  /// The exit code; -1 when it had to be ended.
  int wait(milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        kill(-pid_, SIGKILL);
        waitpid(pid_, &status, 0);
        return -1;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

  void kill_all() const { kill(-pid_, SIGKILL); }

 private:
  pid_t pid_ = -1;
};

class Crashes : public testing::Test {
 protected:
  static constexpr int ranks = 3;

  Job start(const std::string& engine, const std::string& way) {
    for (int rank = 0; rank < ranks; ++rank)
      std::filesystem::remove(folder / ("pid." + std::to_string(rank)));
    return Job({"-n", std::to_string(ranks), KZERO_TEST_WORKER, "save",
                folder.path().string(), engine, way});
  }

  /// 0 when it has not come so far.
  std::int64_t last_number(const std::string& name) const {
    std::ifstream numbers(folder / name);
    std::int64_t last = 0;
    for (std::int64_t number = 0; numbers >> number;) last = number;
    return last;
  }

  void kill_rank(int rank) const {
    const std::int64_t pid = last_number("pid." + std::to_string(rank));
    if (pid > 0) kill(static_cast<pid_t>(pid), SIGKILL);
  }

  void expect_good() const {
    Job check({"-n", "2", KZERO_TEST_WORKER, "check", folder.path().string()});
    ASSERT_EQ(check.wait(milliseconds(60000)), 0);
    EXPECT_GE(last_number("loaded"), last_number("completed"));
  }

  const ScratchFolder folder;
};

TEST_F(Crashes, AtAnyTimeLeaveTheLastSave) {
  const char* const wanted = std::getenv("KZERO_TEST_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 20;
  std::mt19937 dice(20261201);
  for (int i = 0; i < kills; ++i) {
    SCOPED_TRACE(i);
    Job job =
        start(i % 3 == 2 ? "gather" : "direct", i % 2 == 0 ? "wait" : "behind");
    // From the start of the first save on, as far as one can see from outside.
    for (int tries = 0; tries < 5000 && last_number("pid.0") == 0; ++tries)
      std::this_thread::sleep_for(milliseconds(2));
    std::this_thread::sleep_for(milliseconds(dice() % 400));
    if (i % 4 == 3)
      for (int rank = 0; rank < ranks; ++rank) kill_rank(rank);
    else
      kill_rank(static_cast<int>(dice() % ranks));
    EXPECT_GT(job.wait(milliseconds(60000)), 0);
    expect_good();
  }
  EXPECT_GT(last_number("loaded"), kills / 2);
}

TEST_F(Crashes, InEachPhaseLeaveTheLastSave) {
  for (const char* when : {"before", "after"})
    for (const char* call :
         {"pwrite 1", "ftruncate 1", "pwritev 1", "pwritev 2", "fsync 1",
          "pwrite 2", "pwrite 3", "pwrite 4", "fsync 2", "rename 1", "fsync 3",
          "pwrite 6", "fsync 4", "rename 2", "fsync 5"}) {
      SCOPED_TRACE(std::string(call) + " " + when);
      setenv("KZERO_TEST_KILL", (std::string(call) + " " + when).c_str(), 1);
      Job job = start("direct", "wait");
      unsetenv("KZERO_TEST_KILL");
      EXPECT_GT(job.wait(milliseconds(60000)), 0);
      expect_good();
    }
}

}  // namespace
}  // namespace kzero::test
