// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <iterator>
#include <kzero/plan.hpp>

#include "core/message.hpp"
#include "layout/plan_builder.hpp"

namespace kzero {
namespace {

void place_in_order(detail::PlanBuilder& builder,
                    const ParameterSet& parameters,
                    const std::vector<ParameterId>& order) {
  if (std::ssize(order) != parameters.size())
    throw InvalidArgument(detail::concat(
        "PlanOptions::order has another length (expected ", parameters.size(),
        ", one for each parameter, got ", order.size(),
        "): give every parameter once, or leave it empty"));
  for (std::int64_t i = 0; const ParameterId id : order) {
    if (id.index < 0 || id.index >= parameters.size())
      throw InvalidArgument(detail::concat(
          "PlanOptions::order names a parameter that does not exist (at ", i,
          ", expected an index below ", parameters.size(), ", got ", id.index,
          "): give ids of this ParameterSet"));
    if (builder.placed(id))
      throw InvalidArgument(detail::concat(
          "PlanOptions::order names a parameter twice (at ", i, ", parameter ",
          detail::quoted(parameters[id].name), "): give every parameter once"));
    builder.place(id);
    ++i;
  }
}

}  // namespace

Plan make_plan(const ParameterSet& parameters, const PlanOptions& options) {
  detail::check_plan_options(options);
  detail::PlanBuilder builder(parameters, options, Plan());
  if (options.order.empty()) {
    for (std::int64_t i = parameters.size() - 1; i >= 0; --i)
      builder.place(ParameterId{i});
  } else {
    place_in_order(builder, parameters, options.order);
  }
  return builder.finish();
}

}  // namespace kzero
