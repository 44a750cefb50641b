// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/new_checkpoint.hpp"

#include <kzero/error.hpp>
#include <utility>

#include "core/log.hpp"
#include "core/message.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/gather_engine.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

void share_problem(Communicator& communicator, Subject subject,
                   const std::string& problem, const char* note) {
  try {
    throw_if_any(communicator, subject, problem);
  } catch (const InvalidArgument& error) {
    throw CheckpointError(concat(error.what(), note));
  }
}

bool is_direct(Communicator& communicator, Subject subject, Engine engine,
               bool sees_file, const std::string& path) {
  if (engine == Engine::gather) return false;
  std::int64_t blind = sees_file ? communicator.size() : communicator.rank();
  communicator.all_reduce(std::span(&blind, 1), Extremum::minimum, subject);
  if (blind == communicator.size()) return true;
  if (engine == Engine::automatic) return false;
  throw CheckpointError(concat(
      "the engine is direct, but rank ", blind, " does not see the file ",
      detail::quoted(path),
      ": use a folder that all ranks have in common, or Engine::gather"));
}

NewCheckpoint::NewCheckpoint(ShardedOptimizer& optimizer,
                             const std::filesystem::path& path,
                             const CheckpointOptions& options)
    : communicator_(optimizer.communicator()),
      latest_(options.latest),
      keep_(options.keep),
      durable_(options.durable ? Durable::yes : Durable::no),
      status_(*communicator_, "save") {
  status_.attempt([&] {
    writer_.emplace(path, layout_of(optimizer, options.user));
    const NewFile& file = writer_->file();
    shared_ = {file.path().string(),
               file.temporary().string(),
               file.mark(),
               writer_->stored().arrays,
               {}};
  });
  if (!status_.is_root()) layout_ = layout_of(optimizer, {});
  status_.share();
  detail::broadcast(*communicator_, shared_, subject(), status_.root());
  part_ = PartOfNewFile(shared_.path, shared_.temporary, shared_.mark);
  is_direct_ = detail::is_direct(*communicator_, subject(), options.engine,
                                 part_.is_open(), shared_.path);
}

void NewCheckpoint::gather(ShardedOptimizer& optimizer) {
  GatherRoot root;
  if (status_.is_root()) root = {&layout(), &*writer_};
  gather_arrays(optimizer, root, status_);
}

void NewCheckpoint::end_parts(PartialSums sums, const std::string& problem) {
  share_problem(*communicator_, subject(), problem);
  communicator_->all_reduce_sum(sums, subject());
  if (!status_.is_root()) return;
  std::size_t next = 0;
  for (std::size_t i = 0; i < shared_.arrays.size(); ++i)
    for (std::size_t k = 0; k < shared_.arrays[i].size(); ++k)
      writer_->add({i, k}, static_cast<std::uint64_t>(sums[next++]));
}

void NewCheckpoint::commit() {
  status_.attempt([&] {
    writer_->finish(durable_);
    writer_->take_name(durable_);
    tidy_up();
  });
  status_.share();
}

// The file has its name: what fails now harms nothing.
void NewCheckpoint::tidy_up() const {
  const std::filesystem::path& path = writer_->file().path();
  try {
    if (latest_) point_to_latest(path, durable_);
  } catch (const CheckpointError& error) {
    throw CheckpointError(
        concat("the checkpoint ", detail::quoted(path.string()),
               " is complete, but not named as the latest: ", error.what()));
  }
  if (keep_ == 0) return;
  for (const std::string& each : remove_old(path, keep_))
    log(LogLevel::warning,
        concat("save_checkpoint could not remove the old ", each));
}

}  // namespace kzero::detail
