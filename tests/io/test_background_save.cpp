// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Saves that go on behind the training.
#include <gtest/gtest.h>

#include <chrono>
#include <kzero/checkpoint.hpp>
#include <memory>
#include <optional>
#include <thread>

#include "io/checkpoint_error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_model.hpp"
#include "io/file_size_limit.hpp"
#include "io/logged_words.hpp"
#include "io/optimizer_snapshot.hpp"
#include "io/scratch_folder.hpp"

namespace kzero::test {
namespace {

class BackgroundSaves : public testing::Test {
 protected:
  BackgroundSaves() {
    write_start(optimizer, 1);
    train(optimizer, 2);
  }

  Snapshot now() { return snapshot(optimizer, MPI_COMM_WORLD); }

  Snapshot loaded(const std::string& name) {
    ShardedOptimizer other = make_varied(world(), 900);
    load_checkpoint(other, folder / name);
    return snapshot(other, MPI_COMM_WORLD);
  }

  const ScratchFolder folder{MPI_COMM_WORLD};
  ShardedOptimizer optimizer = make_varied(world(), 600);
  const int ranks = optimizer.communicator()->size();
  const int rank = optimizer.communicator()->rank();
};

TEST_F(BackgroundSaves, HoldWhatWasThereAtTheCall) {
  for (int i = 0; i < 3; ++i) {
    const Snapshot before = now();
    SaveTicket ticket = save_checkpoint_async(optimizer, folder / "c.h5");
    train(optimizer, 3);
    ticket.wait();
    EXPECT_TRUE(ticket.done());
    EXPECT_EQ(ticket.error(), "");
    EXPECT_TRUE(equal(loaded("c.h5"), before));
    ticket.wait();
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
  if (rank == 0) detail::CheckpointReader(folder / "c.h5").verify_arrays();
}

TEST_F(BackgroundSaves, AreCompletedByAStep) {
  const Snapshot before = now();
  const SaveTicket ticket = save_checkpoint_async(optimizer, folder / "c.h5");
  EXPECT_FALSE(ticket.done());
  // The same number of steps on every rank: all learn it in the same one.
  int steps = 0;
  while (!ticket.done() && ++steps < 10000) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    train(optimizer, 1);
  }
  EXPECT_TRUE(ticket.done());
  EXPECT_TRUE(std::filesystem::exists(folder / "c.h5"));
  EXPECT_TRUE(equal(loaded("c.h5"), before));
}

TEST_F(BackgroundSaves, AreCompletedByTheNextSaveOrLoad) {
  const Snapshot first = now();
  const SaveTicket one = save_checkpoint_async(optimizer, folder / "c-1.h5");
  train(optimizer, 1);
  const Snapshot second = now();
  SaveTicket two = save_checkpoint_async(optimizer, folder / "c-2.h5");
  EXPECT_TRUE(one.done());
  EXPECT_FALSE(two.done());
  train(optimizer, 1);
  load_latest(optimizer, folder.path());
  EXPECT_TRUE(two.done());
  EXPECT_TRUE(equal(now(), second));
  EXPECT_TRUE(equal(loaded("c-1.h5"), first));
  two = save_checkpoint_async(optimizer, folder / "c-3.h5");
  save_checkpoint(optimizer, folder / "c-4.h5");
  EXPECT_TRUE(two.done());
  EXPECT_EQ(file_bytes(folder / "latest"), "c-4.h5\n");
}

TEST_F(BackgroundSaves, CanBeRefusedMeanwhile) {
  SaveTicket ticket = save_checkpoint_async(optimizer, folder / "c-1.h5");
  const CheckpointOptions refuse{.when_busy = WhenBusy::refuse};
  EXPECT_TRUE(says(message_of<InvalidArgument>([&] {
                     save_checkpoint_async(optimizer, folder / "c-2.h5",
                                           refuse);
                   }),
                   {"still being written"}));
  EXPECT_TRUE(says(message_of<InvalidArgument>([&] {
                     save_checkpoint(optimizer, folder / "c-2.h5", refuse);
                   }),
                   {"still being written"}));
  EXPECT_FALSE(ticket.done());
  ticket.wait();
  save_checkpoint(optimizer, folder / "c-2.h5", refuse);
}

TEST_F(BackgroundSaves, OutliveTheOptimizerAndTheTicket) {
  const Snapshot before = now();
  std::optional<ShardedOptimizer> other(make_varied(world(), 600));
  load_checkpoint(
      *other, (save_checkpoint(optimizer, folder / "a.h5"), folder / "a.h5"));
  SaveTicket ticket = save_checkpoint_async(*other, folder / "c.h5");
  other.reset();
  ticket.wait();
  EXPECT_TRUE(equal(loaded("c.h5"), before));
  { save_checkpoint_async(optimizer, folder / "d.h5"); }
  train(optimizer, 1);
  save_checkpoint(optimizer, folder / "e.h5");
  EXPECT_TRUE(equal(loaded("d.h5"), before));
}

TEST_F(BackgroundSaves, ByGatherAreDoneAtOnce) {
  SaveTicket ticket = save_checkpoint_async(optimizer, folder / "c.h5",
                                            {.engine = Engine::gather});
  EXPECT_TRUE(ticket.done());
  ticket.wait();
  EXPECT_TRUE(equal(loaded("c.h5"), now()));
}

// The disk of the last rank is full: every rank learns it, the old file stays.
TEST_F(BackgroundSaves, TellEveryRankOfAFailure) {
  save_checkpoint(optimizer, folder / "c.h5");
  const std::string old = file_bytes(folder / "c.h5");
  train(optimizer, 1);
  if (ranks == 1) return;
  const LoggedWords words;
  SaveTicket ticket;
  {
    std::unique_ptr<FileSizeLimit> full;
    if (rank == ranks - 1) full = std::make_unique<FileSizeLimit>(4096);
    ticket = save_checkpoint_async(optimizer, folder / "c.h5");
    while (!ticket.done()) train(optimizer, 1);
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(says(checkpoint_error([&] { ticket.wait(); }),
                     {"c.h5", "File too large", "untouched", "found on rank"}));
  EXPECT_EQ(ticket.error(), checkpoint_error([&] { ticket.wait(); }));
  EXPECT_EQ(words.warnings().size(), rank == 0 ? 1u : 0u);
  EXPECT_EQ(file_bytes(folder / "c.h5"), old);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c.h5"});
  train(optimizer, 1);
  const Snapshot before = now();
  save_checkpoint_async(optimizer, folder / "c.h5").wait();
  EXPECT_TRUE(equal(loaded("c.h5"), before));
}

TEST_F(BackgroundSaves, RefuseWhatSavesRefuse) {
  EXPECT_TRUE(says(checkpoint_error([&] {
                     save_checkpoint_async(optimizer, folder / "no" / "c.h5");
                   }),
                   {"no/c.h5", "No such file"}));
  SaveTicket nothing;
  EXPECT_TRUE(nothing.done());
  nothing.wait();
  EXPECT_EQ(nothing.error(), "");
}

}  // namespace
}  // namespace kzero::test
