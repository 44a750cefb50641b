// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include <algorithm>
#include <kzero/version.hpp>
#include <string>

namespace kzero {
namespace {

TEST(BuildInformation, OneLineAFact) {
  // Neither MPI nor Kokkos is initialised here.
  const std::string text = build_information();
  for (const std::string fact :
       {"kzero: " KZERO_VERSION "\n", "\ncompiler: ", "\nKokkos: ", "\nMPI: ",
        "\nHDF5: ", "\ninstruction set: "})
    EXPECT_NE(("\n" + text).find(fact), std::string::npos)
        << fact << " is not in:\n"
        << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6) << text;
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text.find(": \n"), std::string::npos) << text;
}

}  // namespace
}  // namespace kzero
