// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Trains a network on images of handwritten digits, its optimizer's state
// sharded over the ranks. Run: mpiexec -n 4 02_digits
#include <cstdio>
#include <exception>
#include <kzero/kzero.hpp>
#include <string_view>

#include "agreement.hpp"
#include "batches.hpp"
#include "checkpoints.hpp"
#include "data.hpp"
#include "network.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "training.hpp"

namespace {

using namespace digits;

kzero::OptimizerOptions optimizer_options(const Options& options) {
  kzero::AdamW rule;
  rule.learning_rate = options.learning_rate.value_or(default_learning_rate);
  rule.weight_decay = options.weight_decay.value_or(default_weight_decay);
  kzero::OptimizerOptions result;
  result.rule = rule;
  rule.weight_decay = 0.0;
  result.groups["bias"] = rule;
  result.clip_norm = options.clip;
  result.scaler =
      options.scaler.value_or(default_scaler(options.network.dtype));
  if (options.bucket_bytes) result.plan.bucket_bytes = *options.bucket_bytes;
  return result;
}

/// Collective. All batches of one epoch.
EpochSummary train_epoch(Training& training, const Split& images,
                         const Options& options, std::int64_t epoch) {
  const DeviceIndices order = copy_to_device(epoch_order(
      images.training, static_cast<std::uint64_t>(options.seed), epoch));
  const auto count = static_cast<std::int64_t>(images.training.size());

  EpochSummary summary;
  double my_loss = 0.0;
  for (std::int64_t i = 0; i < batch_count(count, options.batch); ++i) {
    const kzero::StepReport report =
        train_on_batch(training, order, batch_range(count, options.batch, i));
    my_loss += *report.loss();
    if (report.updated()) summary.gradient_norm = report.gradient_norm();
    summary.loss_scale = report.loss_scale();
    summary.skipped = report.skipped_total();
  }
  summary.epoch = epoch + 1;
  summary.loss = sum_over_ranks(training, my_loss) / static_cast<double>(count);
  summary.accuracy = accuracy(training, images.held_out);
  summary.learning_rate =
      training.optimizer.group("default").get("learning_rate");
  return summary;
}

void run(const Options& options) {
  // Silent by default: what the library has to say beside errors.
  kzero::set_log_handler([](kzero::LogLevel, std::string_view message) {
    std::fprintf(stderr, "02_digits: %.*s\n", static_cast<int>(message.size()),
                 message.data());
  });
  const auto communicator = kzero::make_communicator(MPI_COMM_WORLD);
  const Digits digits = load_digits(*communicator, options.data);
  const Split images = split_images(digits.size());

  // The network says what its parameters are; the optimizer owns them, with
  // the gradients, and holds this rank's share of their state.
  kzero::ParameterSet model;
  Network network(model, options.network);
  kzero::ShardedOptimizer optimizer(communicator, model,
                                    optimizer_options(options));

  std::int64_t epoch = 0;
  if (options.resume) {
    epoch = resume(optimizer, options);
  } else {
    // Rank 0 draws the weights, and everyone receives them.
    const auto seed = static_cast<std::uint64_t>(options.seed);
    optimizer.write_parameters(0, [&](kzero::ParameterWriter& writer) {
      network.initialise(writer, seed);
    });
  }

  const int rank = communicator->rank();
  Metrics metrics;
  on_rank_0(*communicator, [&] {
    check_folder(options);
    metrics.open(options.metrics, options.resume ? Metrics::Mode::append
                                                 : Metrics::Mode::replace);
  });

  Training training{optimizer, network, copy_to_device(digits)};
  {
    Progress progress(rank, options);
    while (epoch < options.epochs) {
      const EpochSummary summary =
          train_epoch(training, images, options, epoch);
      ++epoch;
      progress.show(summary);
      on_rank_0(*communicator, [&] { metrics.write(summary); });
      const bool last = epoch == options.epochs;
      const bool due =
          options.checkpoint_every > 0 && epoch % options.checkpoint_every == 0;
      if (!options.checkpoint.empty() && (last || due)) {
        save(optimizer, options, epoch);
      }
    }
  }

  const double result = accuracy(training, images.held_out);
  if (rank == 0) std::printf("held-out accuracy: %.3f\n", result);
}

/// Calls f; the program's exit code. Errors that all ranks have found are
/// printed once. After any other one the ranks may be waiting for each other.
template <class F>
int guard(int rank, F&& f) {
  const auto say_once = [&](const std::exception& error) {
    if (rank == 0) std::fprintf(stderr, "02_digits: %s\n", error.what());
    return 2;
  };
  try {
    f();
    return 0;
  } catch (const UserError& error) {
    return say_once(error);
  } catch (const kzero::InvalidArgument& error) {
    return say_once(error);
  } catch (const kzero::CheckpointError& error) {
    return say_once(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "02_digits: [rank %d] %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return 3;
}

}  // namespace

int main(int argc, char* argv[]) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  Options options;
  int code = guard(rank, [&] { options = take_options(argc, argv); });
  if (code == 0 && options.help) {
    if (rank == 0) std::fputs(usage().c_str(), stdout);
  } else if (code == 0) {
    Kokkos::initialize(argc, argv);
    code = guard(rank, [&] { run(options); });
    Kokkos::finalize();
  }
  MPI_Finalize();
  return code;
}
