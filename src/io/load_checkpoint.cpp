// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <fcntl.h>

#include <algorithm>
#include <kzero/checkpoint.hpp>
#include <kzero/error.hpp>
#include <optional>

#include "core/log.hpp"
#include "core/message.hpp"
#include "io/by_name.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/collective_call.hpp"
#include "io/direct_engine.hpp"
#include "io/gather_engine.hpp"
#include "io/new_checkpoint.hpp"
#include "io/restored_numbers.hpp"
#include "io/root_status.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero {

namespace {

using namespace detail;

constexpr const char* partly_loaded =
    "; parameters and state are partly overwritten: load another checkpoint "
    "before going on";

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

/// Of an array that is among them.
std::size_t place_of(std::string_view name,
                     const std::vector<ArrayLayout>& arrays) {
  return static_cast<std::size_t>(
      std::ranges::find(arrays, name, &ArrayLayout::name) - arrays.begin());
}

/// Collective. What one rank finds, all throw.
class Load {
 public:
  Load(ShardedOptimizer& optimizer, const LoadOptions& options)
      : optimizer_(optimizer),
        options_(options),
        status_(*optimizer.communicator(), "load") {}

  /// Reads and decides everything but the arrays.
  void open(const std::filesystem::path& path) {
    model_ = layout_of(optimizer_, {});
    bool is_readable = false;
    status_.attempt([&] {
      reader_.emplace(path, options_.verify ? Verify::yes : Verify::no);
      is_readable = true;
      numbers_ =
          numbers_of(optimizer_, model_, reader_->layout(), options_, path);
      share_file(path);
    });
    try {
      status_.share();
    } catch (const CheckpointError&) {
      damaged_ = from_root(!is_readable);
      throw;
    }
    detail::broadcast(communicator(), numbers_, subject(), status_.root());
    detail::broadcast(communicator(), shared_, subject(), status_.root());
  }

  /// Whether what is wrong is the file.
  bool is_damaged() const { return damaged_; }
  /// Whether arrays may have been overwritten.
  bool has_begun() const { return begun_; }

  const RestoredNumbers& run() {
    const OpenFile file = open_same();
    begun_ = true;
    if (is_direct(communicator(), subject(), options_.engine, file.is_open(),
                  shared_.path))
      read(file);
    else
      scatter();
    restore(optimizer_, numbers_);
    return numbers_;
  }

 private:
  Communicator& communicator() { return *optimizer_.communicator(); }
  Subject subject() const { return {status_.operation()}; }

  /// Collective.
  bool from_root(bool value) {
    std::int64_t number = value ? 1 : 0;
    communicator().broadcast(&number, sizeof number, status_.root(), subject());
    return number != 0;
  }

  void scatter() {
    try {
      const ScatterRoot root{&model_, reader_ ? &*reader_ : nullptr,
                             &shared_.origins};
      scatter_arrays(optimizer_, status_.is_root() ? root : ScatterRoot(),
                     numbers_.loaded, status_);
    } catch (const CheckpointError&) {
      damaged_ = from_root(reader_ && reader_->is_damaged());
      throw;
    }
  }

  /// On the root.
  void share_file(const std::filesystem::path& path) {
    shared_.path = std::filesystem::absolute(path).string();
    shared_.mark = reader_->header();
    shared_.origins = std::move(numbers_.origins);
    const FileLayout& file = reader_->layout();
    ByName in_file(file.parameters);
    for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
      const ParameterLayout& mine = model_.parameters[i];
      const auto arrays = shared_.arrays.add(mine.arrays.size());
      if (shared_.origins[i].empty()) continue;
      const ParameterLayout* theirs = in_file.find(mine.name);
      const auto places = reader_->stored().arrays[static_cast<std::size_t>(
          theirs - file.parameters.data())];
      for (std::size_t k = 0; k < arrays.size(); ++k)
        if (is_read(i, k))
          arrays[k] =
              places[place_of(array_of_file(i, k).name, theirs->arrays)];
    }
  }

  bool is_read(std::size_t parameter, std::size_t array) const {
    const auto origins = shared_.origins[parameter];
    return !origins.empty() && origins[array].is_in_file();
  }

  /// What is read from the file for an array of the model.
  ArrayLayout array_of_file(std::size_t parameter, std::size_t array) const {
    return array_in_file(model_.parameters[parameter].arrays[array],
                         shared_.origins[parameter][array]);
  }

  /// Closed where this rank does not see the file that the root has read.
  OpenFile open_same() const {
    OpenFile file(shared_.path, O_RDONLY);
    std::string found(shared_.mark.size(), '\0');
    if (file.is_open() &&
        (file.read(0, found.data(), std::ssize(found)).error != 0 ||
         found != shared_.mark))
      file = OpenFile();
    return file;
  }

  void read(const OpenFile& file) {
    PartialSums sums;
    std::string problem;
    try {
      sums =
          read_own_pieces(optimizer_, model_, shared_, file, options_.verify);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    share_problem(communicator(), subject(), problem, partly_loaded);
    if (options_.verify) {
      communicator().all_reduce_sum(sums, subject());
      damaged_ = true;
      verify(sums);
      damaged_ = false;
    }
    hand_out_values();
  }

  void verify(const PartialSums& sums) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < shared_.arrays.size(); ++i)
      for (std::size_t k = 0; k < shared_.arrays[i].size(); ++k) {
        const auto sum = static_cast<std::uint64_t>(sums[next++]);
        if (!is_read(i, k) || sum == shared_.arrays[i][k].sum) continue;
        throw CheckpointError(
            concat("cannot load the checkpoint ", detail::quoted(shared_.path),
                   " (", damage(model_.parameters[i], array_of_file(i, k)), ")",
                   partly_loaded));
      }
  }

  /// Every rank has its shards. What is not loaded stays as it is on each.
  void hand_out_values() {
    const Plan& plan = optimizer_.plan();
    for (std::int64_t b = 0; b < std::ssize(plan.buckets()); ++b) {
      const std::vector<ParameterId> loaded = loaded_of(b);
      const Bucket& bucket = plan.buckets()[static_cast<std::size_t>(b)];
      if (!loaded.empty() && b < plan.trained_buckets() &&
          std::ssize(loaded) == bucket.parameters.size())
        OptimizerAccess::gather_values(optimizer_, b, status_.operation());
      else
        for (const ParameterId id : loaded) hand_out_value(b, id);
      for (const ParameterId id : loaded)
        OptimizerAccess::take_main_from_value(optimizer_, id);
    }
  }

  void hand_out_value(std::int64_t bucket, ParameterId id) {
    const ShardTable shards = optimizer_.plan().shards(bucket);
    const Range all = in_bucket(bucket, id);
    // What is frozen the root has read.
    if (bucket >= optimizer_.plan().trained_buckets()) {
      if (all.size() > 0)
        OptimizerAccess::broadcast_values(optimizer_, bucket, all,
                                          status_.root(), status_.operation());
      return;
    }
    for (int rank = 0; rank < communicator().size(); ++rank) {
      const Range part = intersect(all, shards.range(rank));
      if (part.size() > 0)
        OptimizerAccess::broadcast_values(optimizer_, bucket, part, rank,
                                          status_.operation());
    }
  }

  std::vector<ParameterId> loaded_of(std::int64_t bucket) const {
    const Plan& plan = optimizer_.plan();
    const Range places =
        plan.buckets()[static_cast<std::size_t>(bucket)].parameters;
    std::vector<ParameterId> loaded;
    for (std::int64_t i = places.begin; i < places.end; ++i) {
      const ParameterId id =
          plan.buffer_of(bucket).parameters[static_cast<std::size_t>(i)];
      if (numbers_.loaded[static_cast<std::size_t>(id.index)] != 0)
        loaded.push_back(id);
    }
    return loaded;
  }

  Range in_bucket(std::int64_t bucket, ParameterId id) const {
    const Plan& plan = optimizer_.plan();
    return shift(plan.placement(id).in_buffer,
                 -plan.buckets()[static_cast<std::size_t>(bucket)].range.begin);
  }

  ShardedOptimizer& optimizer_;
  const LoadOptions& options_;
  RootStatus status_;
  FileLayout model_;
  std::optional<CheckpointReader> reader_;  // on the root
  RestoredNumbers numbers_;
  SharedFile shared_;
  bool damaged_ = false;
  bool begun_ = false;
};

CheckpointContent run_load(ShardedOptimizer& optimizer, Load& load,
                           const char* name,
                           const std::filesystem::path& path) {
  CheckpointContent content;
  OptimizerAccess::run(optimizer, [&] {
    load.open(path);
    const RestoredNumbers& numbers = load.run();
    for (const std::string& warning : numbers.warnings)
      log(LogLevel::warning,
          concat(name, ", ", detail::quoted(path.string()), ": ", warning));
    content = numbers.content;
  });
  return content;
}

/// Collective. Root's list, on every rank.
void broadcast(Communicator& communicator, std::vector<std::string>& texts,
               Subject subject, int root) {
  std::int64_t count = std::ssize(texts);
  communicator.broadcast(&count, sizeof count, root, subject);
  texts.resize(static_cast<std::size_t>(count));
  for (std::string& text : texts)
    text = broadcast_text(communicator, subject, text, root);
}

}  // namespace

CheckpointContent load_checkpoint(ShardedOptimizer& optimizer,
                                  const std::filesystem::path& path,
                                  const LoadOptions& options) {
  begin_collective_call(optimizer, "load_checkpoint", 0, options);
  Load load(optimizer, options);
  return run_load(optimizer, load, "load_checkpoint", path);
}

std::optional<CheckpointContent> load_latest(
    ShardedOptimizer& optimizer, const std::filesystem::path& folder,
    const LoadOptions& options) {
  const char* const name = "load_latest";
  begin_collective_call(optimizer, name, 0, options);
  Communicator& communicator = *optimizer.communicator();
  RootStatus status(communicator, name);
  std::vector<std::string> files;
  std::vector<std::string> passed_over;
  std::int64_t has_lost = 0;
  bool is_partly_loaded = false;
  status.attempt([&] {
    LatestFiles latest = latest_files(folder);
    has_lost = latest.has_lost ? 1 : 0;
    for (const auto& file : latest.files) files.push_back(file.string());
    passed_over = std::move(latest.passed_over);
  });
  status.share();
  broadcast(communicator, files, {name}, status.root());
  broadcast(communicator, passed_over, {name}, status.root());
  communicator.broadcast(&has_lost, sizeof has_lost, status.root(), {name});
  for (const std::string& file : files) {
    Load load(optimizer, options);
    try {
      CheckpointContent content = run_load(optimizer, load, name, file);
      // What an attempt before has overwritten stays so.
      if (is_partly_loaded &&
          !(content.missing.empty() && content.misshaped.empty()))
        throw CheckpointError(
            concat(name, " has loaded ", detail::quoted(file),
                   ", which lacks parameters that a damaged file before it has "
                   "overwritten",
                   partly_loaded));
      content.path = file;
      content.passed_over = passed_over;
      if (communicator.rank() == 0)
        for (const std::string& each : passed_over)
          log(LogLevel::warning, concat(name, " has passed over: ", each));
      return content;
    } catch (const CheckpointError& error) {
      if (!load.is_damaged()) throw;
      is_partly_loaded |= load.has_begun();
      passed_over.emplace_back(error.what());
      has_lost = 1;
    }
  }
  if (has_lost == 0) return std::nullopt;
  std::string text =
      concat(name, ": the folder ", detail::quoted(folder.string()),
             " has no checkpoint that can be loaded:");
  for (const std::string& each : passed_over) text += "\n  " + each;
  throw CheckpointError(text);
}

}  // namespace kzero
