// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the tests of the digits example share: a run of it.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <kzero/kzero.hpp>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "batches.hpp"
#include "data.hpp"
#include "network.hpp"
#include "options.hpp"
#include "training.hpp"

namespace digits_test {

struct RunOptions {
  digits::NetworkOptions network;
  std::int64_t batch = 64;
  std::uint64_t seed = 1;
  double weight_decay = 1e-2;
  std::optional<double> clip;
  kzero::Scaler scaler = kzero::Scaler::none;
  std::optional<std::int64_t> bucket_bytes;
};

inline constexpr double learning_rate = digits::default_learning_rate;

/// The example's training on the ranks of a communicator, step by step.
class TrainingRun {
 public:
  explicit TrainingRun(const RunOptions& options,
                       MPI_Comm ranks = MPI_COMM_WORLD)
      : options_(options),
        communicator_(kzero::make_communicator(ranks)),
        data_(digits::load_digits(*communicator_, {})),
        images_(digits::split_images(data_.size())),
        network_(model_, options.network),
        optimizer_(communicator_, model_, optimizer_options(options)),
        training_{optimizer_, network_, digits::copy_to_device(data_)} {
    optimizer_.write_parameters(0, [&](kzero::ParameterWriter& writer) {
      network_.initialise(writer, options.seed);
    });
  }

  const digits::Digits& data() const { return data_; }
  kzero::ShardedOptimizer& optimizer() { return optimizer_; }
  std::int64_t steps_per_epoch() const {
    return digits::batch_count(training_count(), options_.batch);
  }

  /// The images of the step-th global batch, counted over the epochs.
  std::vector<int> batch(std::int64_t step) const {
    const auto order = epoch_order(step / steps_per_epoch());
    const auto range = range_of(step);
    return {order.begin() + range.begin, order.begin() + range.end};
  }

  /// Trains on it; the mean loss.
  double step(std::int64_t step) {
    if (const auto epoch = step / steps_per_epoch(); epoch != epoch_) {
      order_ = digits::copy_to_device(epoch_order(epoch));
      epoch_ = epoch;
    }
    const kzero::Range range = range_of(step);
    const auto report = digits::train_on_batch(training_, order_, range);
    skipped_ = report.skipped_total();
    return digits::sum_over_ranks(training_, *report.loss()) /
           static_cast<double>(range.size());
  }

  void steps(std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) step(i);
  }

  /// Steps skipped so far.
  std::int64_t skipped() const { return skipped_; }

  double held_out_accuracy() {
    return digits::accuracy(training_, images_.held_out);
  }

  /// The bytes of all parameters.
  std::vector<unsigned char> parameter_bytes() {
    std::vector<unsigned char> bytes;
    for (std::int64_t i = 0; i < optimizer_.parameters().size(); ++i) {
      optimizer_.visit(kzero::ParameterId{i}, [&](auto values, auto) {
        const auto host =
            Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
        const auto begin = bytes.size();
        const auto size = host.size() * sizeof(*host.data());
        bytes.resize(begin + size);
        std::memcpy(bytes.data() + begin, host.data(), size);
      });
    }
    return bytes;
  }

 private:
  static kzero::OptimizerOptions optimizer_options(const RunOptions& options) {
    kzero::AdamW rule{.learning_rate = learning_rate,
                      .weight_decay = options.weight_decay};
    kzero::OptimizerOptions result;
    result.rule = rule;
    rule.weight_decay = 0.0;
    result.groups["bias"] = rule;
    result.clip_norm = options.clip;
    result.scaler = options.scaler;
    if (options.bucket_bytes) result.plan.bucket_bytes = *options.bucket_bytes;
    return result;
  }

  std::int64_t training_count() const {
    return static_cast<std::int64_t>(images_.training.size());
  }
  std::vector<int> epoch_order(std::int64_t epoch) const {
    return digits::epoch_order(images_.training, options_.seed, epoch);
  }
  kzero::Range range_of(std::int64_t step) const {
    return digits::batch_range(training_count(), options_.batch,
                               step % steps_per_epoch());
  }

  RunOptions options_;
  std::shared_ptr<kzero::Communicator> communicator_;
  digits::Digits data_;
  digits::Split images_;
  kzero::ParameterSet model_;
  digits::Network network_;
  kzero::ShardedOptimizer optimizer_;
  digits::Training training_;
  digits::DeviceIndices order_;
  std::int64_t epoch_ = -1;
  std::int64_t skipped_ = 0;
};

inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// A path for one test's file, the same on every rank; rank 0 removes the file
/// at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name) {
    long process = ::getpid();
    MPI_Bcast(&process, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    path_ = std::filesystem::temp_directory_path() /
            ("kzero_" + std::to_string(process) + "_" + name);
  }
  ~TemporaryFile() {
    MPI_Barrier(MPI_COMM_WORLD);
    std::error_code ignored;
    if (world_rank() == 0) std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace digits_test
