// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "comm/launch_check.hpp"

namespace kzero::detail {
namespace {

class LaunchCheck : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
      unsetenv(name);
    }
  }
};

TEST_F(LaunchCheck, IsSilentWithoutALauncher) {
  EXPECT_EQ(lonely_rank_warning(), std::nullopt);
}

TEST_F(LaunchCheck, IsSilentForOneTask) {
  setenv("SLURM_NTASKS", "1", 1);
  setenv("PMI_SIZE", "1", 1);
  EXPECT_EQ(lonely_rank_warning(), std::nullopt);
}

TEST_F(LaunchCheck, NamesTheVariableAndItsValue) {
  for (const std::string name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    clear();
    setenv(name.c_str(), "4", 1);
    const auto warning = lonely_rank_warning();
    ASSERT_TRUE(warning.has_value()) << name;
    EXPECT_EQ(warning->find(name + " is 4 but the communicator has 1 rank"), 0u)
        << *warning;
    EXPECT_NE(warning->find("harmless if"), std::string::npos) << *warning;
  }
}

TEST_F(LaunchCheck, IgnoresWhatIsNoNumber) {
  for (const char* value :
       {"", "4(x2)", "four", "-4", " 4", "99999999999999999999999"}) {
    setenv("SLURM_NTASKS", value, 1);
    EXPECT_EQ(lonely_rank_warning(), std::nullopt) << value;
  }
}

}  // namespace
}  // namespace kzero::detail
