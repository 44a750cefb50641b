// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The optimizer's parameters and state in an HDF5 file that any number of
// ranks loads. docs/checkpoint_format.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <kzero/load_options.hpp>
#include <kzero/sharded_optimizer.hpp>
#include <map>
#include <memory>
#include <optional>
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

/// What a save does while one that save_checkpoint_async has begun is still
/// being written.
enum class WhenBusy { wait, refuse };

/// But for user the same on every rank.
struct CheckpointOptions {
  /// Rank 0's is written.
  UserData user = {};
  Engine engine = Engine::automatic;
  /// Whether save_checkpoint returns when all lies on disk: what it has written
  /// then survives that the machine stops, and not only that the job does.
  bool durable = true;
  /// Whether the text file "latest" in the same folder is made to name this
  /// file, for load_latest. Then the file itself cannot have this name.
  bool latest = true;
  /// Of the folder's complete checkpoints whose names differ from this one in
  /// digits alone, all but the newest so many are removed, after this one is
  /// complete; 0 keeps all.
  int keep = 0;
  WhenBusy when_busy = WhenBusy::wait;
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
  /// type (that is not converted).
  std::vector<std::string> missing = {};
  std::vector<std::string> extra = {};
  std::vector<std::string> misshaped = {};
  /// With load_latest: the file, and what was newer, or might have been, and
  /// why it was not loaded, a line a file.
  std::string path = {};
  std::vector<std::string> passed_over = {};
};

/// Collective. Writes parameters, state, counts, hyperparameters and user data
/// to a temporary file in the same folder, which then takes the name: path
/// holds either what it held before or all of the new file.
/// Memory beside the optimizer's: with Engine::direct some hundred KiB a rank;
/// with Engine::gather one state array of one bucket on rank 0. Rank 0 keeps
/// the description of the last file, about 1 KiB an array.
/// The communicator's timeout bounds how long ranks wait for one another: for
/// the end of the file to reach the disk, and with Engine::gather for one
/// bucket.
/// Throws CheckpointError on every rank when the file cannot be written; what
/// stood at path is untouched then, and training can go on.
void save_checkpoint(ShardedOptimizer& optimizer,
                     const std::filesystem::path& path,
                     const CheckpointOptions& options = {});

namespace detail {
class BackgroundSave;
}

/// A save that goes on behind the training.
class SaveTicket {
 public:
  /// Of nothing: done.
  SaveTicket() = default;
  /// The save goes on.
  ~SaveTicket();
  SaveTicket(SaveTicket&&) noexcept;
  SaveTicket& operator=(SaveTicket&&) noexcept;

  /// Local. Whether the file has its name, or the save has failed.
  bool done() const;
  /// Collective. Returns when the file has its name. Throws CheckpointError on
  /// every rank when the save has failed, at every call.
  void wait();
  /// Local. Why the save has failed; empty as long as nothing is known.
  std::string error() const;

 private:
  friend SaveTicket save_checkpoint_async(ShardedOptimizer&,
                                          const std::filesystem::path&,
                                          const CheckpointOptions&);
  explicit SaveTicket(std::shared_ptr<detail::BackgroundSave> save);
  std::shared_ptr<detail::BackgroundSave> save_;
};

/// Collective. As save_checkpoint, but returns when every rank has copied what
/// it owns to memory of its own, as large as that, which is kept for the next
/// save. A thread of each rank, which calls neither MPI nor HDF5, writes it.
/// The file is complete, and takes its name, in a step() after all ranks have
/// written, in wait(), at the next save or load, or in MPI_Finalize. A failure
/// is logged on rank 0 there and kept for the ticket; training goes on.
/// With Engine::gather, and where a rank does not see the file, it saves as
/// save_checkpoint does, and the ticket is done. The optimizer may be destroyed
/// before the file is complete.
SaveTicket save_checkpoint_async(ShardedOptimizer& optimizer,
                                 const std::filesystem::path& path,
                                 const CheckpointOptions& options = {});

/// Collective. Restores parameters, state, counts, hyperparameters and the
/// state of a dynamic loss scaler on any number of ranks with any bucket size
/// and partition. Rank 0 reads and checks all but the arrays, and its options
/// are used; the arrays are checked as they are read.
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

/// Collective. Loads the newest checkpoint of a folder that is complete and has
/// the right checksums: the one that the file "latest" names, else the one that
/// was saved last, and so on. What it passes over, it says in the content and
/// in a warning of rank 0. Nothing where the folder has no checkpoint at all.
/// Throws as load_checkpoint; when none of several can be loaded; and for one
/// that is in order and does not fit the model: an older one would hide that.
std::optional<CheckpointContent> load_latest(
    ShardedOptimizer& optimizer, const std::filesystem::path& folder,
    const LoadOptions& options = {});

}  // namespace kzero
