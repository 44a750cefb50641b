// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A reduction that goes through the caller's hook.
#pragma once

#include <kzero/reduction_hook.hpp>

namespace kzero::detail {

/// Throws CommunicationError, naming the bucket, for what the hook throws and
/// when it returns nothing.
ReductionTicket start_hooked(const ReductionHook& hook,
                             Communicator& communicator, const Plan& plan,
                             void* gradients, const ReduceArguments& arguments);

}  // namespace kzero::detail
