// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Update counts are kept for each parameter. Parameters of one group, one main
// type and one count share a prepared step: a class.
#pragma once

#include <cstdint>
#include <kzero/parameter_set.hpp>
#include <kzero/rule.hpp>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/prepared_step.hpp"

namespace kzero::detail {

class UpdateClasses {
 public:
  UpdateClasses() = default;
  /// group_of: the group's index for each parameter. Counts start at 0.
  UpdateClasses(std::span<const ParameterInfo> parameters,
                std::span<const std::int32_t> group_of) {
    add(parameters, group_of);
  }

  /// More parameters, behind those that there are. Their counts are 0.
  void add(std::span<const ParameterInfo> parameters,
           std::span<const std::int32_t> group_of);

  std::int64_t count(std::int64_t parameter) const;
  void set_count(std::int64_t parameter, std::int64_t count);

  /// Prepares the step of the next update for every class.
  void prepare(std::span<const Rule> rules);
  const PreparedStep& prepared(std::int64_t parameter) const {
    return prepared_[static_cast<std::size_t>(
        class_of_[static_cast<std::size_t>(parameter)])];
  }

  /// Every parameter has been updated once more.
  void advance() { ++advances_; }

 private:
  // Group, main type, and the count less advances_: what advance() keeps.
  using Key = std::tuple<std::int32_t, DType, std::int64_t>;
  std::int32_t join(const Key& key);
  void leave(std::int32_t index);

  std::int64_t advances_ = 0;
  std::map<Key, std::int32_t> classes_;
  std::vector<Key> keys_;               // by class
  std::vector<std::int64_t> members_;   // by class; 0: free to be reused
  std::vector<PreparedStep> prepared_;  // by class
  std::vector<std::int32_t> class_of_;  // by parameter
  // Of classes without members, so that parameters that change classes at
  // every step allocate nothing.
  std::vector<std::map<Key, std::int32_t>::node_type> free_;
};

}  // namespace kzero::detail
