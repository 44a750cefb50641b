// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a checkpoint's loss scaler does to the program's.
#pragma once

#include <kzero/scaler.hpp>
#include <optional>
#include <string>

#include "io/file_layout.hpp"

namespace kzero::detail {

struct LoadedScaler {
  LossScaleState state;
  std::string warning;  // empty: both have the same scaler
};

/// Two dynamic scalers: the program's, in the file's state, which is brought
/// into the program's limits. Else the program's in its first state. Where they
/// differ, a warning.
/// Throws CheckpointError for a state that no dynamic scaler has. Local.
LoadedScaler loaded_scaler(const Scaler& program,
                           const std::optional<ScalerLayout>& file);

}  // namespace kzero::detail
