// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The totals of a step over all ranks, and whose gradient was not finite.
#include <algorithm>
#include <cmath>

#include "core/message.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/seconds.hpp"

namespace kzero::detail {
namespace {

bool has_nonfinite(const std::byte* values, DType dtype, Range range) {
  return visit_dtype(dtype, [&]<class T>(std::type_identity<T>) {
    const T* const first = reinterpret_cast<const T*>(values);
    return std::any_of(
        first + range.begin, first + std::max(range.begin, range.end),
        [](T value) { return !std::isfinite(static_cast<double>(value)); });
  });
}

}  // namespace

// Added in tile order here, then in rank order, so that every rank has the
// same bits, and decides alike.
Totals OptimizerCore::exchange_totals() {
  const AddSeconds timer(seconds(Phase::exchange));
  const AddSeconds waiting(exchange_waited_);
  Totals mine;
  for (const Totals& tile : totals_) mine += tile;
  Totals all = add_over_ranks(*communicator, mine, exchanged_);
  // Every rank knows what it has given to the sums of other nodes.
  if (all.unnamed > 0)
    all.culprit = std::min(all.culprit,
                           smallest(*communicator, own_culprit(), culprits_));
  if (!options.model_parallel) return all;
  if (all.culprit.rank != Culprit::nobody)
    all.culprit.model_parallel_rank = options.model_parallel->rank();
  return add_over_ranks(*options.model_parallel, all, exchanged_in_model_);
}

// Other ranks' shards of the buckets are as they were sent. Of this rank's own
// its reduction has told.
Culprit OptimizerCore::own_culprit() const {
  Culprit culprit;
  for (std::int64_t parameter = 0; parameter < parameters.size(); ++parameter) {
    const Placement& place = plan.placement(ParameterId{parameter});
    if (place.bucket >= plan.trained_buckets() || marks_.kept(parameter))
      continue;
    const BucketWork& bucket = buckets[static_cast<std::size_t>(place.bucket)];
    const Range in_bucket = shift(
        place.in_buffer,
        -plan.buckets()[static_cast<std::size_t>(place.bucket)].range.begin);
    const Range own = plan.shards(place.bucket).range(communicator->rank());
    const Range before{in_bucket.begin, std::min(in_bucket.end, own.begin)};
    const Range after{std::max(in_bucket.begin, own.end), in_bucket.end};
    if (!has_nonfinite(bucket.gradients, bucket.gradient_dtype, before) &&
        !has_nonfinite(bucket.gradients, bucket.gradient_dtype, after))
      continue;
    culprit.rank = communicator->rank();
    culprit.parameter = parameter;
    break;
  }
  return culprit;
}

std::optional<NonfiniteSource> OptimizerCore::source_of(
    const Totals& totals) const {
  const Culprit& culprit = totals.culprit;
  if (culprit.rank == Culprit::nobody) return std::nullopt;
  NonfiniteSource source;
  if (culprit.rank != Culprit::only_the_sum)
    source.rank = static_cast<int>(culprit.rank);
  source.parameter = {culprit.parameter};
  if (options.model_parallel)
    source.model_parallel_rank = static_cast<int>(culprit.model_parallel_rank);
  return source;
}

std::string OptimizerCore::nonfinite_message(const StepRecord& record) const {
  std::string text = concat("the averaged gradient was not finite for ",
                            skipped_in_a_row, " steps in a row (",
                            record.nonfinite, " elements in the last one");
  if (record.nonfinite_source) {
    const NonfiniteSource& source = *record.nonfinite_source;
    text += source.rank ? concat(", first from rank ", *source.rank)
                        : std::string(", from the sum over ranks");
    const bool known =
        !options.model_parallel ||
        source.model_parallel_rank == options.model_parallel->rank();
    if (options.model_parallel)
      text += concat(" (model-parallel rank ", source.model_parallel_rank, ")");
    text += known ? concat(" in parameter ",
                           quoted(parameters[source.parameter].name))
                  : concat(" in its parameter ", source.parameter.index);
  }
  return text +
         "); parameters and state are those of the last good step: lower the "
         "learning rate, or look for the cause in the model";
}

}  // namespace kzero::detail
