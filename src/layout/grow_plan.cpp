// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/grow_plan.hpp"

#include <iterator>
#include <string_view>

#include "core/message.hpp"
#include "layout/plan_builder.hpp"

namespace kzero::detail {
namespace {

void require_same(std::string_view option, std::int64_t got,
                  std::int64_t expected) {
  if (got != expected)
    throw InvalidArgument(concat("PlanOptions::", option,
                                 " is another than that of the plan that grows "
                                 "(expected ",
                                 expected, ", got ", got,
                                 "): it is fixed when a plan is made"));
}

[[noreturn]] void refuse_order(std::string_view problem) {
  throw InvalidArgument(concat("PlanOptions::order ", problem,
                               ": give every new parameter once, or none"));
}

std::vector<ParameterId> new_in_order(const PlanOptions& options,
                                      std::int64_t old, std::int64_t size) {
  std::vector<ParameterId> order;
  for (const ParameterId id : options.order) {
    if (id.index < 0 || id.index >= size)
      refuse_order(
          concat("names a parameter that does not exist (expected an "
                 "index below ",
                 size, ", got ", id.index, ")"));
    if (id.index >= old) order.push_back(id);
  }
  if (order.empty())
    for (std::int64_t i = size - 1; i >= old; --i) order.push_back({i});
  if (std::ssize(order) != size - old)
    refuse_order(concat("has another number of new parameters (expected ",
                        size - old, ", got ", order.size(), ")"));
  return order;
}

}  // namespace

Plan grow_plan(const Plan& old, const ParameterSet& parameters,
               const PlanOptions& options) {
  check_plan_options(options);
  require_same("ranks", options.ranks, old.ranks());
  require_same("partition", static_cast<int>(options.partition),
               static_cast<int>(old.partition()));
  require_same("divide", options.divide, old.divide());
  require_same("bucket_bytes", options.bucket_bytes, old.bucket_bytes());
  PlanBuilder builder(parameters, options, old);
  for (const ParameterId id :
       new_in_order(options, builder.old_parameters(), parameters.size())) {
    if (builder.placed(id))
      refuse_order(concat("names a parameter twice (parameter ",
                          quoted(parameters[id].name), ")"));
    builder.place(id);
  }
  return builder.finish();
}

}  // namespace kzero::detail
