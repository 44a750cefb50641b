// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <kzero/version.hpp>

#include "core/message.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/setup_facts.hpp"

namespace kzero::detail {

std::string OptimizerCore::parameter_sharing() const {
  if (!options.share_parameters) return "of each rank";
  const int ranks = gather_communicator->sharing().ranks;
  return ranks == 1 ? "shared by the ranks of a node, of which there is one"
                    : concat("shared by the ", ranks, " ranks of a node");
}

std::string OptimizerCore::describe() const {
  std::int64_t elements = 0;
  for (std::int64_t i = 0; i < parameters.size(); ++i)
    if (parameters[{i}].storage.index == i) elements += parameters[{i}].size;
  const Memory used = memory();
  std::string text = concat(
      "kzero ", version(), ": ", parameters.size(), " parameters, ", elements,
      " elements, in ", bucket_count(), " buckets of ",
      bytes(plan.bucket_bytes()), " of gradients\n",
      "communicator: ", communicator->describe(), "\n",
      "partition: ", to_string(plan.partition()),
      plan.divide() ? ", divided" : "",
      "; schedule: ", to_string(options.schedule),
      "; gather: ", to_string(options.gather), "; progress: ", progress_choice_,
      "; parameters: ", parameter_sharing(), "\n",
      "gradient: ", to_string(options.reduction), ", ordered sum",
      options.reduction_hook ? ", through a hook" : "",
      "; non-finite: ", to_string(nonfinite()), "; clip: ");
  text += options.clip_norm ? concat("norm ", *options.clip_norm) : "none";
  text += concat("; scaler: ", to_string(options.scaler));
  if (!tuned_.empty()) text += concat("\ntuned: ", tuned_);
  if (options.model_parallel)
    text +=
        concat("\nmodel-parallel group: ", options.model_parallel->describe());
  text += concat("\nkernels: ", instruction_set_name(), " on ",
                 ExecutionSpace::name(), "\n");
  for (std::size_t i = 0; i < rules.size(); ++i)
    text += concat("group ", quoted(group_names[i]), ": ", to_string(rules[i]),
                   "\n");
  text += concat("bytes on this rank: parameters ", used.parameters,
                 ", gradients ", used.gradients, ", averaged ", used.averaged,
                 ", main ", used.main, ", moments ", used.moments, ", staging ",
                 used.staging, ", work ", used.work, "\n");
  return text;
}

}  // namespace kzero::detail
