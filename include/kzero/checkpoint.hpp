// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The optimizer's parameters and state in an HDF5 file that any number of
// ranks loads. docs/format.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <kzero/load_options.hpp>
#include <kzero/sharded_optimizer.hpp>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace kzero {

/// An array of the caller's own: values in C order.
template <class T>
struct UserArray {
  std::vector<std::int64_t> extents;
  std::vector<T> values;
  friend bool operator==(const UserArray&, const UserArray&) = default;
};

using UserValue =
    std::variant<std::int64_t, double, std::string, UserArray<std::int64_t>,
                 UserArray<double>, UserArray<float>, std::vector<std::string>>;

/// The caller's own data, by name (any bytes, not empty).
using UserData = std::map<std::string, UserValue>;

struct CheckpointOptions {
  /// Rank 0's is written.
  UserData user = {};
};

/// What a file says beside parameters and state. The same on every rank.
struct CheckpointContent {
  std::int64_t step = 0;        // steps when it was saved
  std::int64_t world_size = 0;  // ranks that saved it
  std::string library_version;
  std::string created;  // UTC, ISO 8601
  UserData user;
  /// With Match::partial, names of parameters: of the model that the file
  /// lacks, of the file that the model lacks, and of both with another shape or
  /// type.
  std::vector<std::string> missing = {};
  std::vector<std::string> extra = {};
  std::vector<std::string> misshaped = {};
};

/// Collective. Writes parameters, state, counts, hyperparameters and user data
/// to a temporary file in the same folder, which then takes the name: path
/// holds either what it held before or all of the new file.
/// Rank 0 writes; it holds at most one bucket of others' data at a time.
/// The communicator's timeout bounds how long the others wait for one bucket,
/// and for the end of the file, to reach the disk.
/// Throws CheckpointError on every rank when the file cannot be written; what
/// stood at path is untouched then, and training can go on.
void save_checkpoint(ShardedOptimizer& optimizer,
                     const std::filesystem::path& path,
                     const CheckpointOptions& options = {});

/// Collective. Restores parameters, state, counts, hyperparameters and the
/// state of a dynamic loss scaler on any number of ranks with any bucket size.
/// Rank 0 reads, and its options are used.
/// Throws CheckpointError on every rank when the file cannot be read, is not a
/// complete kzero file, or holds other parameters, shapes, types or rules than
/// the model and the options do not allow it; the optimizer is unchanged then,
/// unless reading breaks off in the middle of the arrays, which the message
/// says.
/// The program's scaler stays. A dynamic one takes the state of a dynamic one,
/// within its own limits; where the file has another kind, the program's starts
/// from its initial scale. Rank 0 logs a warning of whatever differs.
/// Then there is no averaged_gradient() until the next step().
CheckpointContent load_checkpoint(ShardedOptimizer& optimizer,
                                  const std::filesystem::path& path,
                                  const LoadOptions& options = {});

}  // namespace kzero
