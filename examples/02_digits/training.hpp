// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One step of training, and how good the network is.
#pragma once

#include <kzero/kzero.hpp>
#include <vector>

#include "batches.hpp"
#include "network.hpp"

namespace digits {

/// What one rank trains with. References are to outlive it.
struct Training {
  kzero::ShardedOptimizer& optimizer;
  Network& network;
  DeviceDigits digits;
  Space space = {};
};

/// Collective. Trains on one global batch: the images of numbers order(batch),
/// of which each rank takes its part. The report's loss is this rank's part of
/// the loss summed over the batch.
kzero::StepReport train_on_batch(Training& training, const DeviceIndices& order,
                                 kzero::Range batch);

/// Collective. The sum of the ranks' numbers, on every rank.
double sum_over_ranks(const Training& training, double value);

/// Collective. The part of these images that is classified rightly.
double accuracy(Training& training, const std::vector<int>& images);

}  // namespace digits
