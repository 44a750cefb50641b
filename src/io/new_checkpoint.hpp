// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A checkpoint that all ranks make together. Every member is collective unless
// it says otherwise, and throws CheckpointError on every rank when one fails.
#pragma once

#include <filesystem>
#include <kzero/checkpoint.hpp>
#include <memory>
#include <optional>
#include <string>

#include "io/checkpoint_file.hpp"
#include "io/direct_engine.hpp"
#include "io/root_status.hpp"

namespace kzero::detail {

/// Every rank throws CheckpointError with the problem of the lowest rank that
/// has one, and note behind it.
void share_problem(Communicator& communicator, Subject subject,
                   const std::string& problem, const char* note = "");

/// Whether the elements go straight to the file, or from it. sees_file: whether
/// this rank can.
bool is_direct(Communicator& communicator, Subject subject, Engine engine,
               bool sees_file, const std::string& path);

class NewCheckpoint {
 public:
  /// Lays the file out, creates it, and finds out which engine writes it.
  NewCheckpoint(ShardedOptimizer& optimizer, const std::filesystem::path& path,
                const CheckpointOptions& options);

  // Local.
  bool is_direct() const { return is_direct_; }
  const SharedFile& shared() const { return shared_; }
  PartOfNewFile& part() { return part_; }
  /// Of the file.
  const FileLayout& layout() const {
    return writer_ ? writer_->stored().layout : layout_;
  }
  /// Closes the file, and removes what is there of it unless it has its name.
  void let_go() {
    writer_.reset();
    part_ = PartOfNewFile();
  }
  Durable durable() const { return durable_; }
  Communicator& communicator() const { return *communicator_; }
  Subject subject() const { return {status_.operation()}; }

  /// By Engine::gather.
  void gather(ShardedOptimizer& optimizer);

  /// After every rank has written its part; problem: why it has not.
  void end_parts(PartialSums sums, const std::string& problem);

  /// The file is complete and takes its name.
  void commit();

 private:
  void tidy_up() const;

  std::shared_ptr<Communicator> communicator_;
  bool latest_;
  int keep_;
  Durable durable_;
  RootStatus status_;
  std::optional<CheckpointWriter> writer_;  // on the root
  FileLayout layout_;                       // on the others
  SharedFile shared_;
  PartOfNewFile part_;
  bool is_direct_ = false;
};

}  // namespace kzero::detail
