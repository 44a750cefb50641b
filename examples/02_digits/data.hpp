// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The images of handwritten digits, from an HDF5 file (examples/data).
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <filesystem>
#include <kzero/communicator.hpp>
#include <kzero/parameter_view.hpp>
#include <vector>

namespace digits {

inline constexpr int pixel_count = 64;
inline constexpr int class_count = 10;

/// As in the file: pixels 0..16, an image a row, and the digit 0..9 of each.
struct Digits {
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// Reads the datasets images and labels. Local. Throws std::runtime_error when
/// the file is missing or holds anything else.
Digits read_digits(const std::filesystem::path& path);

/// Looks for digits.h5: the file that the environment variable KZERO_DIGITS
/// names; else digits.h5 beside the program; else examples/data/digits.h5 in
/// any folder above the program or the current folder. Throws
/// std::runtime_error when there is none.
std::filesystem::path find_digits();

/// Collective. Rank 0 reads, from find_digits() when path is empty, and sends
/// to all. Throws UserError on every rank.
Digits load_digits(kzero::Communicator& communicator,
                   std::filesystem::path path);

/// Where the kernels want the images: pixels scaled to 0..1.
struct DeviceDigits {
  using Space = kzero::ExecutionSpace;
  Kokkos::View<float**, Kokkos::LayoutRight, Space> images;
  Kokkos::View<int*, Space> labels;
};
DeviceDigits copy_to_device(const Digits& digits);

/// Image numbers where the kernels want them.
using DeviceIndices = Kokkos::View<int*, kzero::ExecutionSpace>;
DeviceIndices copy_to_device(const std::vector<int>& indices);

}  // namespace digits
