// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/background_save.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <kzero/error.hpp>
#include <list>
#include <mutex>
#include <utility>

#include "comm/aligned_memory.hpp"
#include "comm/at_finalize.hpp"
#include "core/log.hpp"
#include "core/message.hpp"
#include "io/own_pieces.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

constexpr std::int64_t alignment = 64;

/// Those that are not over, in the order in which they began, which is that of
/// every rank. Never destroyed: MPI may end when objects of static storage are
/// gone.
struct UnderWay {
  std::mutex mutex;
  std::list<std::shared_ptr<BackgroundSave>> all;
  bool at_end = false;
};

UnderWay& under_way() {
  static auto& instance = *new UnderWay;
  return instance;
}

std::shared_ptr<BackgroundSave> first_under_way() {
  const std::lock_guard lock(under_way().mutex);
  return under_way().all.empty() ? nullptr : under_way().all.front();
}

void forget(const BackgroundSave* save) {
  const std::lock_guard lock(under_way().mutex);
  std::erase_if(under_way().all,
                [save](const auto& each) { return each.get() == save; });
}

void end_all() {
  try {
    while (const auto save = first_under_way()) {
      try {
        save->end();
      } catch (...) {
        forget(save.get());
      }
    }
  } catch (...) {
    // Then MPI_Finalize goes on as it would have done.
  }
}

/// A communicator of one rank can do without MPI.
bool is_mpi_there() {
  int begun = 0;
  int ended = 0;
  return MPI_Initialized(&begun) == MPI_SUCCESS && begun != 0 &&
         MPI_Finalized(&ended) == MPI_SUCCESS && ended == 0;
}

void remember(std::shared_ptr<BackgroundSave> save) {
  const std::lock_guard lock(under_way().mutex);
  if (!under_way().at_end) {
    if (is_mpi_there())
      call_at_finalize(end_all);
    else
      static_cast<void>(std::atexit(end_all));
    under_way().at_end = true;
  }
  under_way().all.push_back(std::move(save));
}

std::shared_ptr<std::byte> memory_for(std::int64_t bytes) {
  try {
    return {static_cast<std::byte*>(allocate_aligned(bytes)), free_aligned};
  } catch (const Error&) {
    throw Error(concat("save_checkpoint_async: no memory for a copy of ", bytes,
                       " bytes: use save_checkpoint, or more ranks"));
  }
}

}  // namespace

BackgroundSave::BackgroundSave(ShardedOptimizer& optimizer,
                               const std::filesystem::path& path,
                               const CheckpointOptions& options)
    : file_(optimizer, path, options) {
  if (!file_.is_direct()) {
    file_.gather(optimizer);
    file_.commit();
    file_.let_go();
    is_over_ = true;
    return;
  }
  std::string problem;
  try {
    copy(optimizer);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  share_problem(file_.communicator(), file_.subject(), problem);
  try {
    thread_ = std::thread([this] { write(); });
  } catch (const std::exception&) {
    write();  // it takes longer, and no harm is done
  }
}

BackgroundSave::~BackgroundSave() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundSave::copy(ShardedOptimizer& optimizer) {
  std::vector<OwnPiece> own;
  std::int64_t bytes = 0;
  for_each_own_piece(optimizer, file_.layout(), [&](const OwnPiece& piece) {
    own.push_back(piece);
    pieces_.push_back({piece.index, piece.place(), bytes, piece.bytes()});
    bytes += (piece.bytes() + alignment - 1) / alignment * alignment;
  });
  const auto before = std::dynamic_pointer_cast<BackgroundSave>(
      OptimizerAccess::pending_call(optimizer));
  if (before != nullptr && before->memory_bytes_ >= bytes) {
    memory_ = std::move(before->memory_);
    memory_bytes_ = std::exchange(before->memory_bytes_, 0);
  } else {
    if (before != nullptr) {
      before->memory_ = nullptr;
      before->memory_bytes_ = 0;
    }
    memory_ = memory_for(bytes);
    memory_bytes_ = bytes;
  }
  OptimizerAccess::for_each(
      optimizer, "kzero::copy", std::ssize(own), [&](std::int64_t i) {
        const OwnPiece& piece = own[static_cast<std::size_t>(i)];
        std::byte* const to =
            memory_.get() + pieces_[static_cast<std::size_t>(i)].offset;
        if (piece.data != nullptr)
          std::memcpy(to, piece.data, static_cast<std::size_t>(piece.bytes()));
        else
          OptimizerAccess::read_value(optimizer, piece.id, piece.elements, to);
      });
}

void BackgroundSave::write() noexcept {
  try {
    PieceWriter writer(file_.shared(), file_.part());
    for (const Piece& piece : pieces_)
      writer.write(piece.index, piece.place, memory_.get() + piece.offset,
                   piece.bytes);
    sums_ = writer.finish();
    file_.part().finish(file_.durable());
  } catch (const std::exception& error) {
    problem_ = error.what();
  } catch (...) {
    problem_ = "an exception of unknown type";
  }
  is_written_.store(true, std::memory_order_release);
}

void BackgroundSave::advance() {
  if (is_over()) return;
  std::int64_t written = is_written_.load(std::memory_order_acquire) ? 1 : 0;
  file_.communicator().all_reduce(std::span(&written, 1), Extremum::minimum,
                                  file_.subject());
  if (written != 0) finish();
}

void BackgroundSave::end() {
  if (!is_over()) finish();
}

void BackgroundSave::finish() {
  if (thread_.joinable()) thread_.join();
  const auto over = [this](std::string why) {
    error_ = std::move(why);
    file_.let_go();
    is_over_ = true;
    forget(this);
  };
  try {
    file_.end_parts(std::move(sums_), problem_);
    file_.commit();
  } catch (const CheckpointError& error) {
    if (file_.communicator().rank() == 0)
      log(LogLevel::warning, concat("save_checkpoint_async: ", error.what()));
    return over(error.what());
  } catch (const std::exception& error) {
    over(error.what());
    throw;
  }
  over("");
}

bool is_saving(ShardedOptimizer& optimizer) {
  const auto& call = OptimizerAccess::pending_call(optimizer);
  return call != nullptr && !call->is_over();
}

std::shared_ptr<BackgroundSave> start_saving(ShardedOptimizer& optimizer,
                                             const std::filesystem::path& path,
                                             const CheckpointOptions& options) {
  auto save = std::make_shared<BackgroundSave>(optimizer, path, options);
  if (!save->is_over()) remember(save);
  OptimizerAccess::pending_call(optimizer) = save;
  return save;
}

}  // namespace kzero::detail
