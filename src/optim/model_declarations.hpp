// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What the ranks of a model-parallel group declare under each name.
#pragma once

#include <functional>
#include <kzero/communicator.hpp>
#include <kzero/optimizer_options.hpp>
#include <kzero/parameter_set.hpp>
#include <map>
#include <string>
#include <string_view>

namespace kzero::detail {

// Words that no rule has in its name.
inline constexpr std::string_view split_kind = "split, ";
inline constexpr std::string_view kept_kind = "kept when unmarked, ";

/// What the ranks of the group tell of a parameter.
enum class Role : char { replicated = 'r', split = 's', copy = 'c' };

/// All in words, to be compared and shown.
struct Declaration {
  int rank = 0;
  Role role = Role::replicated;
  std::string shape;    // type and extents
  std::string kind;     // what else a parameter has the same everywhere
  std::string tied_to;  // name of what it is a copy of
};

/// By name; those of one name in rank order.
using Declarations = std::multimap<std::string, Declaration, std::less<>>;

/// The parameter of the whole model that this one is tied to; empty for none. A
/// tie in the set and one beyond it are the same thing here.
std::string target_of(const ParameterSet& parameters, ParameterId id);

Role role_of(const ParameterSet& parameters, ParameterId id);

/// Collective over the group. The declarations of all its ranks.
Declarations gather_declarations(Communicator& group,
                                 const ParameterSet& parameters,
                                 const OptimizerOptions& options);

/// Throws InvalidArgument when declarations of one name, or those of a
/// parameter and its copies, do not go together.
void check(const Declarations& all);

}  // namespace kzero::detail
