// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Reading the images: rank 0 reads, every rank gets them or the same error.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <array>
#include <fstream>
#include <string>

#include "agreement.hpp"
#include "data.hpp"
#include "examples/digits_support.hpp"

namespace {

using digits_test::TemporaryFile;
using digits_test::world_rank;

std::shared_ptr<kzero::Communicator> world() {
  return kzero::make_communicator(MPI_COMM_WORLD);
}

/// Writes a file with labels 0, 1 and as many pixels an image as asked.
void write_file(const std::filesystem::path& path, hsize_t pixels,
                unsigned char pixel) {
  const hid_t file =
      H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const auto write = [&](const char* name, std::vector<hsize_t> extents,
                         const std::vector<unsigned char>& values) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()),
                                         extents.data(), nullptr);
    const hid_t set = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT,
             values.data());
    H5Dclose(set);
    H5Sclose(space);
  };
  write("labels", {2}, {0, 1});
  write("images", {2, pixels}, std::vector<unsigned char>(2 * pixels, pixel));
  H5Fclose(file);
}

/// The message of the error that every rank gets; empty without an error.
std::string message_of_loading(const std::filesystem::path& path) {
  try {
    digits::load_digits(*world(), path);
    return "";
  } catch (const digits::UserError& error) {
    return error.what();
  }
}

TEST(DigitsData, EveryRankGetsTheImages) {
  const digits::Digits data = digits::load_digits(*world(), {});
  ASSERT_EQ(data.size(), 1797);
  ASSERT_EQ(data.images.size(), 1797u * 64u);
  const std::array<int, 8> first_row = {0, 0, 5, 13, 9, 1, 0, 0};
  EXPECT_TRUE(
      std::equal(first_row.begin(), first_row.end(), data.images.begin()));
  EXPECT_EQ(data.labels[0], 0);
  EXPECT_EQ(data.labels[1796], 8);
}

TEST(DigitsData, MissingFile) {
  EXPECT_EQ(message_of_loading("/nowhere/digits.h5"),
            "data file /nowhere/digits.h5 does not exist: name another with "
            "--data FILE");
}

TEST(DigitsData, NotHdf5) {
  const TemporaryFile file("not_hdf5.h5");
  if (world_rank() == 0) std::ofstream(file.path()) << "1,2,3\n";
  EXPECT_EQ(message_of_loading(file.path()),
            "data file " + file.path().string() + " cannot be opened as HDF5");
}

TEST(DigitsData, OtherShapesAndValues) {
  const TemporaryFile file("other.h5");
  if (world_rank() == 0) write_file(file.path(), 64, 16);
  EXPECT_EQ(message_of_loading(file.path()), "");
  if (world_rank() == 0) write_file(file.path(), 63, 16);
  EXPECT_NE(message_of_loading(file.path()).find("shape of dataset \"images\""),
            std::string::npos);
  if (world_rank() == 0) write_file(file.path(), 64, 17);
  EXPECT_NE(message_of_loading(file.path()).find("values above 16"),
            std::string::npos);
}

}  // namespace
