// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Finds h5py, the other reader of checkpoints.
#pragma once

#include <cstdlib>
#include <string>

namespace kzero::test {

/// A Python that has h5py, or nothing.
inline std::string python_with_h5py() {
  for (const std::string python : {"python3", "/usr/bin/python3"})
    if (std::system((python + " -c 'import h5py' 2>/dev/null").c_str()) == 0)
      return python;
  return {};
}

}  // namespace kzero::test
