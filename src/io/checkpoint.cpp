// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/checkpoint.hpp>
#include <kzero/error.hpp>
#include <optional>

#include "core/log.hpp"
#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/gather_engine.hpp"
#include "io/restored_numbers.hpp"
#include "io/root_status.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

namespace {

using namespace detail;

void check(const LoadOptions& options) {
  if (options.match != Match::strict && options.match != Match::partial)
    throw InvalidArgument(
        concat("LoadOptions::match is unknown (expected a code from 0 to 1, "
               "got ",
               static_cast<int>(options.match), "): use an enumerator"));
  if (options.other_rule != OtherRule::refuse &&
      options.other_rule != OtherRule::start_anew)
    throw InvalidArgument(
        concat("LoadOptions::other_rule is unknown (expected a code from 0 to "
               "1, got ",
               static_cast<int>(options.other_rule), "): use an enumerator"));
}

/// Collective. Throws InvalidArgument on every rank when any rank is between a
/// mark and step(), or has wrong options.
void synchronize(ShardedOptimizer& optimizer, const char* what,
                 const LoadOptions& options = {}) {
  std::string problem;
  try {
    OptimizerAccess::synchronize(optimizer, what);  // first: others may wait
    check(options);
  } catch (const InvalidArgument& error) {
    problem = error.what();
  }
  throw_if_any(*optimizer.communicator(), {what}, problem);
}

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
  synchronize(optimizer, "save_checkpoint");
  RootStatus status(*optimizer.communicator(), {"save"});
  FileLayout layout;
  std::optional<CheckpointWriter> writer;
  RootFile root;
  status.attempt([&] {
    layout = layout_of(optimizer, options.user);
    writer.emplace(path, layout);
    root = {&layout, &*writer, nullptr, nullptr};
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
  synchronize(optimizer, "load_checkpoint", options);
  Communicator& communicator = *optimizer.communicator();
  RootStatus status(communicator, {"load"});
  FileLayout model;
  std::optional<CheckpointReader> reader;
  RootFile root;
  RestoredNumbers numbers;
  status.attempt([&] {
    model = layout_of(optimizer, {});
    reader.emplace(path);
    numbers = numbers_of(optimizer, model, reader->layout(), options, path);
    root = {&model, nullptr, &*reader, &numbers.sources};
  });
  status.share();
  broadcast(communicator, numbers);
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
