// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// User data as bytes, from rank 0 to all.
#pragma once

#include <kzero/checkpoint.hpp>

#include "io/wire.hpp"

namespace kzero::detail {

void put(WireWriter& writer, const UserData& user);
void take(WireReader& reader, UserData& user);

}  // namespace kzero::detail
