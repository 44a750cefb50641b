// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/checkpoint.hpp>
#include <kzero/error.hpp>
#include <optional>

#include "core/log.hpp"
#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/collective_call.hpp"
#include "io/gather_engine.hpp"
#include "io/restored_numbers.hpp"
#include "io/root_status.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

namespace {

using namespace detail;

/// What the file that path names has for this model.
RestoredNumbers numbers_of(const ShardedOptimizer& optimizer,
                           const FileLayout& model, const FileLayout& file,
                           const LoadOptions& options,
                           const std::filesystem::path& path) {
  try {
    return restored_numbers(optimizer, model, file, options);
  } catch (const CheckpointError& error) {
    throw CheckpointError(concat("cannot load the checkpoint ",
                                 detail::quoted(path.string()), " (",
                                 error.what(), ")"));
  }
}

}  // namespace

void save_checkpoint(ShardedOptimizer& optimizer,
                     const std::filesystem::path& path,
                     const CheckpointOptions& options) {
  begin_collective_call(optimizer, "save_checkpoint", 0);
  RootStatus status(*optimizer.communicator(), "save");
  FileLayout layout;
  std::optional<CheckpointWriter> writer;
  GatherRoot root;
  status.attempt([&] {
    layout = layout_of(optimizer, options.user);
    writer.emplace(path, layout);
    root = {&layout, &*writer};
  });
  OptimizerAccess::run(optimizer,
                       [&] { gather_arrays(optimizer, root, status); });
  // Rank 0 has everything: the file is good, whatever becomes of the others.
  status.attempt([&] {
    writer->finish();
    writer->take_name();
  });
  status.share();
}

CheckpointContent load_checkpoint(ShardedOptimizer& optimizer,
                                  const std::filesystem::path& path,
                                  const LoadOptions& options) {
  begin_collective_call(optimizer, "load_checkpoint", 0, options);
  Communicator& communicator = *optimizer.communicator();
  RootStatus status(communicator, "load");
  FileLayout model;
  std::optional<CheckpointReader> reader;
  ScatterRoot root;
  RestoredNumbers numbers;
  status.attempt([&] {
    model = layout_of(optimizer, {});
    reader.emplace(path);
    numbers = numbers_of(optimizer, model, reader->layout(), options, path);
    root = {&model, &*reader, &numbers.sources};
  });
  status.share();
  broadcast(communicator, numbers, {status.operation()}, status.root());
  OptimizerAccess::run(optimizer, [&] {
    scatter_arrays(optimizer, root, numbers.loaded, status);
  });
  restore(optimizer, numbers);
  for (const std::string& warning : numbers.warnings)
    log(LogLevel::warning,
        concat("load_checkpoint, ", detail::quoted(path.string()), ": ",
               warning));
  return numbers.content;
}

}  // namespace kzero
