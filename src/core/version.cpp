// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/version.hpp>

namespace kzero {

std::string_view version() { return KZERO_VERSION; }

}  // namespace kzero
