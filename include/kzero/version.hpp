// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Version at compile time (macros of config.hpp) and at run time.
#pragma once

#include <kzero/config.hpp>
#include <string>
#include <string_view>

namespace kzero {

/// Version of the library that is linked, "major.minor.patch".
std::string_view version();

/// One line a fact: version, compiler, Kokkos and its backends, MPI, HDF5, and
/// the instruction set that the kernels use on this machine.
std::string build_information();

}  // namespace kzero
