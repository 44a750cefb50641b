// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace kzero::test {

/// What the operating system says of the mapping around an address, in bytes: a
/// line "name: number kB" of /proc/self/smaps. -1 where there is none.
inline std::int64_t mapping_bytes(const void* address,
                                  const std::string& name) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  const std::string label = name + ":";
  std::ifstream maps("/proc/self/smaps");
  bool is_wanted = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      is_wanted = begin <= wanted && wanted < end;
    else if (is_wanted && line.rfind(label, 0) == 0)
      return std::stoll(line.substr(label.size())) * 1024;
  }
  return -1;
}

}  // namespace kzero::test
