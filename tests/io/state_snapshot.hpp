// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A consolidated state in the words of a snapshot, to be compared with one.
#pragma once

#include <kzero/optimizer_state.hpp>
#include <string>

#include "io/optimizer_snapshot.hpp"

namespace kzero::test {

inline Snapshot snapshot_of(const OptimizerState& state) {
  Snapshot all;
  for (const ParameterState& parameter : state.parameters) {
    all[parameter.name + "|updates"] = bytes_of(parameter.update_count);
    for (const StateArray& array : parameter.arrays)
      all[parameter.name + "|" + array.name] = {
          reinterpret_cast<const char*>(array.bytes.data()),
          array.bytes.size()};
  }
  for (const GroupState& group : state.groups)
    for (const auto& [name, value] : group.hyperparameters)
      all["group " + group.name + "|" + name] = bytes_of(value);
  all["steps"] = bytes_of(state.steps);
  all["skipped"] = bytes_of(state.skipped_total);
  all["skipped in a row"] = bytes_of(state.skipped_in_a_row);
  all["scale"] = bytes_of(state.scaler.scale);
  all["scale's good steps"] = bytes_of(state.scaler.good_steps);
  all["scale's hysteresis"] = bytes_of(state.scaler.hysteresis_left);
  return all;
}

}  // namespace kzero::test
