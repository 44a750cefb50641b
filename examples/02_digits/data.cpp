// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "data.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

#include "agreement.hpp"

namespace digits {
namespace {

namespace fs = std::filesystem;

/// Folder of the running program, where the system tells; else empty.
fs::path program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path();
}

}  // namespace

fs::path find_digits() {
  if (const char* named = std::getenv("KZERO_DIGITS")) return named;
  std::error_code error;
  const fs::path program = program_folder();
  if (!program.empty() && fs::exists(program / "digits.h5", error)) {
    return program / "digits.h5";
  }
  for (const fs::path& start : {program, fs::current_path(error)}) {
    for (fs::path folder = start; !folder.empty();
         folder = folder.parent_path()) {
      const fs::path candidate = folder / "examples" / "data" / "digits.h5";
      if (fs::exists(candidate, error)) return candidate;
      if (folder == folder.root_path()) break;
    }
  }
  throw std::runtime_error(
      "digits.h5 not found (looked beside the program, and for "
      "examples/data/digits.h5 above the program and the current folder): name "
      "it with --data FILE");
}

Digits load_digits(kzero::Communicator& communicator, fs::path path) {
  Digits digits;
  on_rank_0(communicator,
            [&] { digits = read_digits(path.empty() ? find_digits() : path); });
  std::int64_t count = digits.size();
  communicator.broadcast(&count, sizeof count, 0, {"number of images"});
  digits.images.resize(static_cast<std::size_t>(count * pixel_count));
  digits.labels.resize(static_cast<std::size_t>(count));
  communicator.broadcast(digits.images.data(), count * pixel_count, 0,
                         {"images"});
  communicator.broadcast(digits.labels.data(), count, 0, {"labels"});
  return digits;
}

DeviceDigits copy_to_device(const Digits& digits) {
  const auto count = static_cast<std::size_t>(digits.size());
  DeviceDigits device;
  device.images = decltype(device.images)("digits::images", count, pixel_count);
  device.labels = decltype(device.labels)("digits::labels", count);
  const auto images = Kokkos::create_mirror_view(device.images);
  const auto labels = Kokkos::create_mirror_view(device.labels);
  for (std::size_t n = 0; n < count; ++n) {
    for (std::size_t i = 0; i < pixel_count; ++i) {
      images(n, i) =
          static_cast<float>(digits.images[n * pixel_count + i]) / 16.0f;
    }
    labels(n) = digits.labels[n];
  }
  Kokkos::deep_copy(device.images, images);
  Kokkos::deep_copy(device.labels, labels);
  return device;
}

DeviceIndices copy_to_device(const std::vector<int>& indices) {
  DeviceIndices device("digits::indices", indices.size());
  const auto host = Kokkos::create_mirror_view(device);
  std::copy(indices.begin(), indices.end(), host.data());
  Kokkos::deep_copy(device, host);
  return device;
}

}  // namespace digits
