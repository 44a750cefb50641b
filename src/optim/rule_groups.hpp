// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Which rule updates a parameter: that of its group, or where that one is for
// matrices and the parameter is none, that of the group beside it.
#pragma once

#include <cstdint>
#include <kzero/optimizer_options.hpp>
#include <kzero/parameter_set.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kzero::detail {

/// Whether a rule is for matrices.
inline bool updates_matrices(const Rule& rule) {
  return rule.beside() != nullptr;
}

/// Whether such a rule can update the parameter.
inline bool is_matrix(const ParameterInfo& info) {
  return info.extents.size() == 2;
}

/// "<group>/beside".
std::string beside_name(std::string_view group);

/// The rule of a group of this name.
const Rule& rule_of_group(const OptimizerOptions& options,
                          const std::string& group);

/// The rule that updates a parameter.
const Rule& rule_of_parameter(const OptimizerOptions& options,
                              const ParameterInfo& info);

/// All groups of an optimizer, and which of them each parameter is in.
struct RuleGroups {
  std::vector<std::string> names;
  std::vector<Rule> rules;              // by group
  std::vector<std::int32_t> group_of;   // by parameter
  std::vector<std::string> unexpected;  // of options.groups: none is in it
};

/// Those of the parameters in order of declaration, then the others of
/// options.groups; after each whose rule is for matrices the one beside it.
/// Throws InvalidArgument where that one has a rule for matrices as well.
RuleGroups group_rules(const ParameterSet& parameters,
                       const OptimizerOptions& options);

/// Throws InvalidArgument where a rule for matrices would have to update a part
/// of one, or one that is too large for BLAS, or wants work memory of an
/// impossible size. ranks: that share the state.
void require_whole_matrices(const ParameterSet& parameters,
                            const OptimizerOptions& options,
                            const RuleGroups& groups, int ranks);

}  // namespace kzero::detail
