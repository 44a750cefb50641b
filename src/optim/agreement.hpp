// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// How ranks find out together that something is wrong, so that all of them
// throw the same error instead of some waiting for the others.
#pragma once

#include <cstdint>
#include <functional>
#include <kzero/communicator.hpp>
#include <string>
#include <string_view>

namespace kzero::detail {

/// Collective. problem is what this rank found, empty when nothing. If any
/// rank found something, every rank throws InvalidArgument with the problem of
/// the lowest such rank.
void throw_if_any(Communicator& communicator, Subject subject,
                  const std::string& problem);

/// Collective. root's text, on every rank.
std::string broadcast_text(Communicator& communicator, Subject subject,
                           std::string text, int root);

/// Facts that must be the same on every rank: calls its argument with each
/// fact's name and value, always in the same order.
using FactSource = std::function<void(
    const std::function<void(std::string_view name, std::string_view value)>&)>;

/// Collective, one small all-gather where all is well. As throw_if_any, and
/// every rank throws InvalidArgument naming the first fact in which a rank
/// differs from rank 0, with both values.
void require_agreement(Communicator& communicator, Subject subject,
                       const FactSource& facts, const std::string& problem);

}  // namespace kzero::detail
