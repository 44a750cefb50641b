// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Construction: what is checked, and agreed on between ranks.
#include <cmath>
#include <kzero/error.hpp>
#include <random>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/optimizer_core.hpp"
#include "optim/setup_facts.hpp"

namespace kzero::detail {
namespace {

template <class Enum>
void require_known(const char* name, Enum value, Enum last) {
  if (value >= Enum{} && value <= last) return;
  throw InvalidArgument(
      concat("OptimizerOptions::", name,
             " is unknown (expected a code from 0 to ", static_cast<int>(last),
             ", got ", static_cast<int>(value), "): use an enumerator"));
}

}  // namespace

void OptimizerCore::agree(Communicator& communicator, Subject subject,
                          const ParameterSet& set,
                          const OptimizerOptions& given, std::string problem,
                          ModelGroup& model) {
  Communicator* group = given.model_parallel.get();
  if (group == &communicator) {
    problem =
        "OptimizerOptions::model_parallel is the optimizer's own communicator "
        "(expected another one, got the same): give the group of ranks that "
        "hold the other parts of this rank's copy of the model, or nothing";
    group = nullptr;
  }
  // Ranks of other data-parallel groups wait in the exchange of the
  // model-parallel group: what one group finds goes there, and what is found
  // there comes back.
  try {
    require_agreement(
        communicator, subject,
        [&](const auto& fact) {
          fact("model_parallel",
               group == nullptr
                   ? "none"
                   : concat("a group of ", group->size(),
                            " ranks, this is its rank ", group->rank()));
          for_each_setup_fact(set, given, fact);
        },
        problem);
  } catch (const InvalidArgument& error) {
    problem = error.what();
    if (group != nullptr) {
      try {
        agree_on_model(*group, set, given, 0, problem);
      } catch (const InvalidArgument& told) {
        problem = told.what();
      }
    }
    throw_if_any(communicator, subject, problem);
  }
  if (group == nullptr) return;
  std::uint64_t data_group = 0;
  if (communicator.rank() == 0) {
    std::random_device random;
    data_group = std::uint64_t{random()} << 32 | random();
  }
  communicator.broadcast(&data_group, sizeof data_group, 0, subject);
  problem.clear();
  try {
    model = agree_on_model(*group, set, given, data_group, "");
  } catch (const InvalidArgument& error) {
    problem = error.what();
  }
  throw_if_any(communicator, subject, problem);
}

void OptimizerCore::throw_on_all(Subject subject, const std::string& problem) {
  if (!options.model_parallel) {
    throw_if_any(*communicator, subject, problem);
    return;
  }
  std::string known = problem;
  try {
    throw_if_any(*communicator, subject, problem);
  } catch (const InvalidArgument& error) {
    known = error.what();
  }
  throw_if_any(*options.model_parallel, subject, known);
}

// What is updated bucket by bucket cannot wait for the last one.
void OptimizerCore::require_no_decision() const {
  if (!interleaved()) return;
  const auto refuse = [](const std::string& what) {
    throw InvalidArgument(
        concat("schedule is interleaved, but ", what,
               " (buckets are updated before the last gradient has come): use "
               "Schedule::after_backward, or go without it"));
  };
  if (options.clip_norm)
    refuse(concat("clip_norm ", *options.clip_norm,
                  " needs the norm of the whole gradient first"));
  if (may_skip()) {
    const std::string what = options.scaler.kind() == Scaler::Kind::dynamic
                                 ? concat("scaler ", to_string(options.scaler))
                                 : concat("nonfinite ", to_string(nonfinite()));
    refuse(concat(what, " needs the whole gradient looked at first"));
  }
}

void OptimizerCore::require_no_trust_ratio(
    std::span<const std::string> names, std::span<const Rule> of_groups) const {
  if (!interleaved()) return;
  for (std::size_t i = 0; i < of_groups.size(); ++i)
    if (uses_trust_ratio(of_groups[i]))
      throw InvalidArgument(concat(
          "schedule is interleaved, but rule ", of_groups[i].name(),
          " of group ", quoted(names[i]),
          " needs a trust ratio of all ranks' pieces (buckets are updated "
          "before the last gradient has come): use Schedule::after_backward, "
          "or another rule"));
}

void OptimizerCore::validate_options() const {
  if (options.groups.contains(""))
    throw InvalidArgument(
        concat("OptimizerOptions::groups has a rule (",
               to_string(options.groups.at("")),
               ") for a group without a name: expected a name, got \"\""));
  require_known("schedule", options.schedule, Schedule::interleaved);
  require_known("gather", options.gather, GatherMode::overlapped);
  require_known("progress", options.progress, Progress::calls);
  if (options.progress == Progress::thread && overlaps() && !permits_a_thread())
    throw InvalidArgument(
        "progress is thread, but MPI was not initialised with "
        "MPI_THREAD_MULTIPLE: ask MPI_Init_thread for it, or use "
        "Progress::calls or automatic");
  if (options.clip_norm &&
      !(std::isfinite(*options.clip_norm) && *options.clip_norm > 0.0))
    throw InvalidArgument(concat("clip_norm is ", *options.clip_norm,
                                 ", expected a finite number above 0: leave "
                                 "it empty for no clipping"));
  const auto action = options.nonfinite.action();
  if (options.scaler.kind() == Scaler::Kind::dynamic &&
      (action == Nonfinite::Action::report ||
       action == Nonfinite::Action::ignore))
    throw InvalidArgument(concat(
        "nonfinite is ", to_string(options.nonfinite),
        ", but a dynamic scaler needs steps that overflow to be skipped: use "
        "Nonfinite::skip, throw_after or automatic"));
  require_no_decision();
  const double scale = options.scaler.scaling().initial_scale;
  if (!is_usable(scale, divisor()))
    throw InvalidArgument(concat(
        "the loss scale ", scale, " times the divisor ", divisor(),
        " is no number to divide float32 gradients by (expected a product from "
        "1.2e-38 to 8.5e37): choose another scale or divisor"));
  const int ranks = options.plan.ranks;
  if (ranks != 0 && ranks != communicator->size())
    throw InvalidArgument(
        concat("plan.ranks is ", ranks, ", but the communicator has ",
               communicator->size(), " ranks: leave it 0 in an optimizer"));
}

}  // namespace kzero::detail
