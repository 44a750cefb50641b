// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Finds the layouts of a list by their names.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kzero::detail {

/// Quick where they are asked for in the order of the list, or the same one
/// again: only for others a table is made. The list outlives it.
template <class Layout>
class ByName {
 public:
  explicit ByName(const std::vector<Layout>& layouts) : layouts_(layouts) {}

  /// Null where there is none of this name.
  const Layout* find(std::string_view name) {
    for (const std::size_t guess : {next_, next_ - 1})
      if (guess < layouts_.size() && layouts_[guess].name == name)
        return found(guess);
    if (places_.empty())
      for (std::size_t i = 0; i < layouts_.size(); ++i)
        places_.emplace(layouts_[i].name, i);
    const auto place = places_.find(name);
    return place == places_.end() ? nullptr : found(place->second);
  }

 private:
  const Layout* found(std::size_t place) {
    next_ = place + 1;
    return &layouts_[place];
  }

  const std::vector<Layout>& layouts_;
  std::size_t next_ = 0;  // behind the one found last
  std::unordered_map<std::string_view, std::size_t> places_;
};

}  // namespace kzero::detail
