// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Gives inputs, files or all of a folder, to the parsers once more, and each
// with many of its bytes changed, which is what can be done without libFuzzer.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

namespace {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replay(const std::filesystem::path& path) {
  constexpr int changes = 300;
  const std::vector<std::uint8_t> input = bytes_of(path);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  std::mt19937 random(7);
  for (int i = 0; i < changes && input.size() > 1; ++i) {
    std::vector<std::uint8_t> changed = input;
    for (unsigned k = 0; k <= random() % 3; ++k)
      changed[1 + random() % (changed.size() - 1)] =
          static_cast<std::uint8_t>(random());
    if (i % 3 == 0) changed.resize(1 + random() % changed.size());
    LLVMFuzzerTestOneInput(changed.data(), changed.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      replay(argv[i]);
      ++count;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      replay(entry.path());
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
