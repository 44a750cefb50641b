// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/hooked_reduction.hpp"

#include <algorithm>
#include <exception>
#include <kzero/error.hpp>

#include "core/message.hpp"

namespace kzero {

struct HookedReduction {
  static BucketReduction make(Communicator& communicator, const Plan& plan,
                              void* gradients,
                              const ReduceArguments& arguments) {
    return {communicator, plan, gradients, arguments};
  }
};

bool BucketReduction::is_last() const {
  return index() == plan_.trained_buckets() - 1;
}

std::span<const ParameterId> BucketReduction::parameters() const {
  const Range places =
      plan_.buckets()[static_cast<std::size_t>(index())].parameters;
  return std::span(plan_.buffer_of(index()).parameters)
      .subspan(static_cast<std::size_t>(places.begin),
               static_cast<std::size_t>(places.size()));
}

Range BucketReduction::range(ParameterId id) const {
  const Placement& place = plan_.placement(id);
  if (place.bucket != index())
    throw InvalidArgument(detail::concat(
        "parameter ", id.index, " is not in bucket ", index(),
        " (it is in bucket ", place.bucket, "): ask for one of parameters()"));
  return shift(place.in_buffer,
               -plan_.buckets()[static_cast<std::size_t>(index())].range.begin);
}

void BucketReduction::require(DType dtype) const {
  if (dtype == arguments_.dtype) return;
  throw InvalidArgument(detail::concat(
      "the gradients of bucket ", index(), " are ", to_string(arguments_.dtype),
      ", but a span of ", to_string(dtype), " was asked for: ask for dtype()"));
}

ReductionTicket BucketReduction::start() const {
  return start(arguments_.bucket, arguments_.dtype);
}

ReductionTicket BucketReduction::start(const void* gradients,
                                       DType dtype) const {
  if (started_)
    throw InvalidArgument(detail::concat(
        "bucket ", index(),
        " is started twice in one step: return what start() has given"));
  ReduceArguments arguments = arguments_;
  arguments.bucket = gradients;
  arguments.dtype = dtype;
  started_ = true;
  return communicator_.start_reduce(arguments);
}

namespace detail {

ReductionTicket start_hooked(const ReductionHook& hook,
                             Communicator& communicator, const Plan& plan,
                             void* gradients,
                             const ReduceArguments& arguments) {
  ReductionTicket ticket = call_hooked(arguments.index, [&] {
    BucketReduction bucket =
        HookedReduction::make(communicator, plan, gradients, arguments);
    return hook(bucket);
  });
  if (!ticket)
    throw CommunicationError(
        concat("reduction hook, bucket ", arguments.index,
               ": it returned no ticket: return what start() gives, or a "
               "PendingReduction of your own"));
  return ticket;
}

}  // namespace detail
}  // namespace kzero
