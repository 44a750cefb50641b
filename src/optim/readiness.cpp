// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/readiness.hpp"

#include <algorithm>

namespace kzero::detail {

// Two names of one storage are marked each: its gradient is complete when both
// are.
Readiness::Readiness(const ParameterSet& parameters, const Plan& plan)
    : names_(static_cast<std::size_t>(plan.trained_buckets())) {
  for (std::int64_t i = 0; i < parameters.size(); ++i)
    if (!parameters[{i}].frozen)
      ++names_[static_cast<std::size_t>(plan.placement({i}).bucket)];
  missing_ = names_;
}

void Readiness::clear() {
  std::copy(names_.begin(), names_.end(), missing_.begin());
  leading_ = 0;
}

}  // namespace kzero::detail
