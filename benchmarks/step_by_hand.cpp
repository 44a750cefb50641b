// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "step_by_hand.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <kzero/rule.hpp>

#include "kernels/flush_denormals.hpp"
#include "kernels/prepared_step.hpp"
#include "streams.hpp"
#include "widest.hpp"

namespace kzero::bench {

namespace {

HugeVector<float> zeros(std::int64_t count) {
  return HugeVector<float>(static_cast<std::size_t>(count), 0.0F);
}

KZERO_BENCH_WIDEST double sum_of_squares(const float* values,
                                         std::int64_t count) {
  constexpr int lanes = 16;
  double squares[lanes] = {};
  for (std::int64_t i = 0; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane)
      squares[lane] += double(values[i + lane]) * double(values[i + lane]);
  double total = 0;
  for (const double square : squares) total += square;
  return total;
}

}  // namespace

float first_gradient(std::int64_t i, int rank) {
  return static_cast<float>((i * 7 + rank * 13) % 31 - 15);
}

StepByHand::StepByHand(const StepSize& size, int ranks, int rank)
    : size_(size),
      ranks_(ranks),
      rank_(rank),
      shard_(size.elements / ranks),
      gradients_(zeros(size.elements)),
      parameters_(static_cast<std::size_t>(size.elements)),
      averaged_(zeros(shard_)),
      main_(zeros(shard_)),
      exp_avg_(zeros(shard_)),
      exp_avg_sq_(zeros(shard_)) {
  for (std::int64_t i = 0; i < size.elements; ++i)
    gradients_[static_cast<std::size_t>(i)] = first_gradient(i, rank);
}

double StepByHand::gradient_factor() const {
  const double mean = 1.0 / ranks_;
  if (!size_.clip_norm) return mean;
  double squares = sum_of_squares(averaged_.data(), shard_) * mean * mean;
  MPI_Allreduce(MPI_IN_PLACE, &squares, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return std::min(1.0, *size_.clip_norm / (std::sqrt(squares) + 1e-6)) * mean;
}

void StepByHand::run() {
  MPI_Reduce_scatter_block(gradients_.data(), averaged_.data(),
                           static_cast<int>(shard_), MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD);
  const detail::PreparedStep step =
      detail::prepare_step(AdamW{}, ++steps_, DType::bfloat16);
  detail::UpdateTile tile;
  tile.step = step.step;
  tile.gradient_factor = gradient_factor();
  tile.gradient = averaged_.data();
  tile.main = main_.data();
  tile.parameter = parameters_.data() + rank_ * shard_;
  tile.state[0] = exp_avg_.data();
  tile.state[1] = exp_avg_sq_.data();
  tile.count = shard_;
  {
    const detail::FlushDenormals flush;
    (*step.update)[static_cast<std::size_t>(DType::bfloat16)](tile);
  }
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, parameters_.data(),
                static_cast<int>(shard_ * 2), MPI_BYTE, MPI_COMM_WORLD);
  std::memset(gradients_.data(), 0, gradients_.size() * sizeof(float));
}

void StepByHand::move_bytes(Copies copies) {
  std::vector<const void*> parts;
  for (int r = 0; r < ranks_; ++r)
    parts.push_back(gradients_.data() + r * shard_);
  if (size_.clip_norm) {
    move_as_sum(parts, shard_, averaged_.data());
    parts = {averaged_.data()};
  }
  move_as_update({parts,
                  {main_.data(), exp_avg_.data(), exp_avg_sq_.data()},
                  parameters_.data() + rank_ * shard_,
                  shard_});
  // The other shards come from memory that is not this one: the gradients'.
  for (int r = 0; r < ranks_ && copies == Copies::each; ++r)
    if (r != rank_)
      std::memcpy(static_cast<void*>(parameters_.data() + r * shard_),
                  gradients_.data() + r * shard_,
                  static_cast<std::size_t>(shard_) * 2);
  std::memset(gradients_.data(), 0, gradients_.size() * sizeof(float));
}

}  // namespace kzero::bench
