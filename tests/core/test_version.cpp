// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <kzero/version.hpp>
#include <string>

namespace kzero {
namespace {

TEST(Version, IsTheOneOfTheHeaders) {
  EXPECT_EQ(version(), KZERO_VERSION);
  EXPECT_EQ(version(), std::to_string(KZERO_VERSION_MAJOR) + "." +
                           std::to_string(KZERO_VERSION_MINOR) + "." +
                           std::to_string(KZERO_VERSION_PATCH));
}

}  // namespace
}  // namespace kzero
