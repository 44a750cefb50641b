// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A reduction that goes through the caller's hook.
#pragma once

#include <kzero/error.hpp>
#include <kzero/reduction_hook.hpp>

#include "core/message.hpp"

namespace kzero::detail {

/// Calls what is the caller's own. Throws CommunicationError, naming the
/// bucket, for anything that it throws.
template <class F>
auto call_hooked(std::int64_t bucket, F&& f) {
  const auto refuse = [bucket](std::string_view why) {
    return CommunicationError(
        concat("reduction hook, bucket ", bucket, ": ", why));
  };
  try {
    return f();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    throw refuse(error.what());
  } catch (...) {
    throw refuse("it threw what is no std::exception");
  }
}

/// Throws CommunicationError, naming the bucket, for what the hook throws and
/// when it returns nothing.
ReductionTicket start_hooked(const ReductionHook& hook,
                             Communicator& communicator, const Plan& plan,
                             void* gradients, const ReduceArguments& arguments);

}  // namespace kzero::detail
