// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/checkpoint.hpp>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/background_save.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/collective_call.hpp"
#include "io/new_checkpoint.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

using namespace detail;

namespace {

void begin_save(ShardedOptimizer& optimizer, const char* name,
                const std::filesystem::path& path,
                const CheckpointOptions& options) {
  std::string problem;
  if (options.keep < 0)
    problem = concat(name, ": keep is ", options.keep,
                     ", expected 0 or more: give how many files stay, 0 for "
                     "all");
  else if (options.latest && path.filename() == latest_name)
    problem = concat(name, ": the file cannot be ", detail::quoted(latest_name),
                     ", which names the newest one (expected another name): "
                     "give another, or set CheckpointOptions::latest to false");
  else if (options.when_busy == WhenBusy::refuse && is_saving(optimizer))
    problem = concat(name,
                     ": the save before is still being written (expected it to "
                     "be done): wait for its ticket, or use WhenBusy::wait");
  begin_collective_call(
      optimizer, name, 0, {.engine = options.engine},
      concat("durable ", options.durable, ", latest ", options.latest,
             ", keep ", options.keep, ", when_busy ",
             static_cast<int>(options.when_busy)),
      problem);
}

}  // namespace

void save_checkpoint(ShardedOptimizer& optimizer,
                     const std::filesystem::path& path,
                     const CheckpointOptions& options) {
  begin_save(optimizer, "save_checkpoint", path, options);
  OptimizerAccess::run(optimizer, [&] {
    NewCheckpoint file(optimizer, path, options);
    if (file.is_direct()) {
      PartialSums sums;
      std::string problem;
      try {
        sums = write_own_pieces(optimizer, file.layout(), file.shared(),
                                file.part());
        file.part().finish(file.durable());
      } catch (const std::exception& error) {
        problem = error.what();
      }
      file.end_parts(std::move(sums), problem);
    } else {
      file.gather(optimizer);
    }
    file.commit();
  });
}

SaveTicket save_checkpoint_async(ShardedOptimizer& optimizer,
                                 const std::filesystem::path& path,
                                 const CheckpointOptions& options) {
  begin_save(optimizer, "save_checkpoint_async", path, options);
  std::shared_ptr<BackgroundSave> save;
  OptimizerAccess::run(optimizer,
                       [&] { save = start_saving(optimizer, path, options); });
  return SaveTicket(std::move(save));
}

SaveTicket::SaveTicket(std::shared_ptr<BackgroundSave> save)
    : save_(std::move(save)) {}
SaveTicket::~SaveTicket() = default;
SaveTicket::SaveTicket(SaveTicket&&) noexcept = default;
SaveTicket& SaveTicket::operator=(SaveTicket&&) noexcept = default;

bool SaveTicket::done() const { return save_ == nullptr || save_->is_over(); }

void SaveTicket::wait() {
  if (save_ == nullptr) return;
  save_->end();
  if (!save_->error().empty()) throw CheckpointError(save_->error());
}

std::string SaveTicket::error() const {
  return save_ == nullptr ? std::string() : save_->error();
}

}  // namespace kzero
