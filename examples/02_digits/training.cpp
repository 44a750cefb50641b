// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "training.hpp"

#include <cstdint>
#include <span>

namespace digits {

kzero::StepReport train_on_batch(Training& training, const DeviceIndices& order,
                                 kzero::Range batch) {
  kzero::ShardedOptimizer& optimizer = training.optimizer;
  const int rank = optimizer.communicator()->rank();
  const int ranks = optimizer.communicator()->size();
  const kzero::Range mine = rank_part(batch, rank, ranks);
  const DeviceIndices images =
      Kokkos::subview(order, Kokkos::make_pair(mine.begin, mine.end));

  // step() averages over the ranks, whose parts need not be equal. With P
  // ranks and B images, P/B before each image's gradient makes that average
  // the mean over the images. step() divides by the loss scale.
  const float scale = static_cast<float>(ranks) /
                      static_cast<float>(batch.size()) *
                      static_cast<float>(optimizer.loss_scale());

  optimizer.zero_gradients(training.space);
  // A rank without an image takes part all the same.
  return optimizer.step([&] {
    return training.network.add_gradients(optimizer, training.digits, images,
                                          scale, training.space);
  });
}

double sum_over_ranks(const Training& training, double value) {
  training.optimizer.communicator()->all_reduce_sum(std::span(&value, 1),
                                                    {"sum over ranks"});
  return value;
}

double accuracy(Training& training, const std::vector<int>& images) {
  const auto& communicator = training.optimizer.communicator();
  const auto count = static_cast<std::int64_t>(images.size());
  const kzero::Range mine =
      rank_part({0, count}, communicator->rank(), communicator->size());
  const std::int64_t correct = training.network.count_correct(
      training.optimizer, training.digits,
      copy_to_device(std::vector<int>(images.begin() + mine.begin,
                                      images.begin() + mine.end)),
      training.space);
  return sum_over_ranks(training, static_cast<double>(correct)) /
         static_cast<double>(count);
}

}  // namespace digits
