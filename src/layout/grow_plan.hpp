// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A plan for more parameters, under which the memory of those before them can
// stay where it is.
#pragma once

#include <kzero/plan.hpp>

namespace kzero::detail {

/// parameters: those of the old plan, then new ones. What the old plan says of
/// its parameters stays: buffers, buckets, places, owners, shards; only the
/// indices of its frozen buckets go up. New parameters have buffers of their
/// own, behind the old ones; their trained buckets come behind the old trained
/// ones. New names of an old storage lie where it does. Owners are found by the
/// options' rules, on top of what each rank has; divide looks at all
/// parameters.
/// New parameters are laid out in the options' order, in which old ones are
/// passed over; in the reverse order of declaration where it has no new one.
/// Local and pure, as make_plan. Throws InvalidArgument as it does, and when
/// there are fewer parameters than before, or the options' ranks, partition,
/// divide or bucket_bytes are not those of the old plan.
Plan grow_plan(const Plan& old, const ParameterSet& parameters,
               const PlanOptions& options);

}  // namespace kzero::detail
