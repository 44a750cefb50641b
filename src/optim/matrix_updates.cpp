// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/matrix_updates.hpp"

#include <algorithm>

#include "kernels/flush_denormals.hpp"
#include "kernels/kernels.hpp"
#include "optim/rule_groups.hpp"

namespace kzero::detail {
MatrixUpdates::MatrixUpdates(const Setup& setup) {
  const std::int64_t bucket_count = setup.plan.trained_buckets();
  first_.assign(static_cast<std::size_t>(bucket_count) + 1, 0);
  std::int64_t bytes = 0;
  // By bucket, then by place.
  for (const Segment& segment : setup.plan.segments(setup.rank)) {
    const std::int64_t index = segment.parameter.index;
    const Rule* const rule = setup.rule_of[static_cast<std::size_t>(index)];
    if (rule == nullptr || !updates_matrices(*rule)) continue;
    const ParameterInfo& info = setup.parameters[segment.parameter];
    if (info.size == 0) continue;
    bytes = std::max(bytes, matrix_work_elements(*rule, info.extents[0],
                                                 info.extents[1], setup.clips) *
                                size_of(main_dtype(info.dtype)));
    matrices_.push_back(
        {index, info.extents[0], info.extents[1], segment.in_shard.begin});
    ++first_[static_cast<std::size_t>(segment.bucket) + 1];
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  work_ = WorkMemory(bytes);
}

void MatrixUpdates::update(std::int64_t bucket, const BucketWork& work,
                           const UpdateClasses& classes, const Marks& marks,
                           double clip) const {
  const auto b = static_cast<std::size_t>(bucket);
  if (first_[b] == first_[b + 1]) return;
  const std::int64_t width = work.main_bytes;
  const FlushDenormals flush;
  for (std::int64_t i = first_[b]; i < first_[b + 1]; ++i) {
    const Matrix& matrix = matrices_[static_cast<std::size_t>(i)];
    if (marks.kept(matrix.parameter)) continue;
    const PreparedStep& prepared = classes.prepared(matrix.parameter);
    MatrixTask task;
    task.step = prepared.step;
    task.gradient_factor = clip * prepared.sign;
    task.rows = matrix.rows;
    task.columns = matrix.columns;
    task.t = prepared.t;
    task.gradient = work.averaged + matrix.in_shard * width;
    task.main = work.main + matrix.in_shard * width;
    for (std::size_t array = 0; array < maximum_state_arrays; ++array)
      if (work.state[array] != nullptr)
        task.state[array] = work.state[array] + matrix.in_shard * width;
    task.work = work_.data();
    (*prepared.matrix)[width == 8 ? 1 : 0](task);
    if (work.parameter_shard != nullptr)
      host_kernels().narrow[static_cast<std::size_t>(work.dtype)](
          static_cast<const float*>(task.main),
          work.parameter_shard + matrix.in_shard * 2,
          matrix.rows * matrix.columns);
  }
}

}  // namespace kzero::detail
