// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <kzero/error.hpp>
#include <string_view>
#include <unordered_map>

#include "core/message.hpp"
#include "io/file_layout.hpp"

namespace kzero::detail {

namespace {

constexpr std::size_t shown = 4;  // of each kind

/// Names of one kind of difference; the first few are shown.
class NameList {
 public:
  void add(std::string text) {
    if (++count_ <= shown) shown_.push_back(std::move(text));
  }

  void describe(std::string_view what, std::string& message) const {
    if (count_ == 0) return;
    message += concat(message.empty() ? "" : "; ", what);
    for (std::size_t i = 0; i < shown_.size(); ++i)
      message += concat(i == 0 ? " " : ", ", shown_[i]);
    if (count_ > shown) message += concat(" and ", count_ - shown, " more");
  }

 private:
  std::size_t count_ = 0;
  std::vector<std::string> shown_;
};

struct Differences {
  NameList missing, unexpected, different;

  std::string describe(std::string_view things) const {
    std::string text;
    missing.describe(concat(things, " missing in the file:"), text);
    unexpected.describe(concat(things, " that the model does not have:"), text);
    different.describe(concat(things, " that differ:"), text);
    return text;
  }
};

/// Calls f(of the model, of the file) for each pair of one name.
template <class Layout, class F>
void match_names(const std::vector<Layout>& model,
                 const std::vector<Layout>& file, Differences& differences,
                 F&& f) {
  std::unordered_map<std::string_view, const Layout*> found;
  for (const Layout& each : file) found.emplace(each.name, &each);
  for (const Layout& each : model) {
    const auto place = found.find(each.name);
    if (place == found.end()) {
      differences.missing.add(detail::quoted(each.name));
    } else {
      f(each, *place->second);
      found.erase(place);
    }
  }
  for (const Layout& each : file)
    if (found.contains(each.name))
      differences.unexpected.add(detail::quoted(each.name));
}

std::string differing_arrays(const ParameterLayout& model,
                             const ParameterLayout& file) {
  Differences differences;
  match_names(model.arrays, file.arrays, differences,
              [&](const ArrayLayout& mine, const ArrayLayout& theirs) {
                if (mine.dtype != theirs.dtype)
                  differences.different.add(concat(detail::quoted(mine.name),
                                                   " is ", theirs.dtype,
                                                   ", expected ", mine.dtype));
              });
  return differences.describe("arrays");
}

std::string differing_parameter(const ParameterLayout& model,
                                const ParameterLayout& file) {
  if (model.extents != file.extents)
    return concat("has the shape ", std::span(file.extents), ", expected ",
                  std::span(model.extents));
  const DType expected = model.arrays.front().dtype;
  const DType got = file.arrays.front().dtype;
  if (expected != got) return concat("is ", got, ", expected ", expected);
  if (model.group != file.group)
    return concat("is in the group ", detail::quoted(file.group), ", expected ",
                  detail::quoted(model.group));
  return differing_arrays(model, file);
}

/// Hyperparameters of the first group that the second one does not have.
std::vector<std::string> names_only_in(const GroupLayout& first,
                                       const GroupLayout& second) {
  std::vector<std::string> names;
  for (const auto& each : first.hyperparameters) {
    const auto same = [&](const auto& other) {
      return other.first == each.first;
    };
    if (std::ranges::none_of(second.hyperparameters, same))
      names.push_back(each.first);
  }
  return names;
}

std::string differing_group(const GroupLayout& model, const GroupLayout& file) {
  if (model.rule != file.rule)
    return concat("has the rule ", detail::quoted(file.rule), ", expected ",
                  detail::quoted(model.rule));
  const auto missing = names_only_in(model, file);
  if (!missing.empty())
    return concat("lacks the hyperparameter ", detail::quoted(missing.front()));
  const auto unknown = names_only_in(file, model);
  if (!unknown.empty())
    return concat("has the hyperparameter ", detail::quoted(unknown.front()),
                  ", which the rule does not know");
  return {};
}

}  // namespace

void require_match(const FileLayout& model, const FileLayout& file) {
  Differences groups;
  match_names(
      model.groups, file.groups, groups,
      [&](const GroupLayout& mine, const GroupLayout& theirs) {
        const std::string text = differing_group(mine, theirs);
        if (!text.empty())
          groups.different.add(concat(detail::quoted(mine.name), " ", text));
      });
  Differences parameters;
  match_names(model.parameters, file.parameters, parameters,
              [&](const ParameterLayout& mine, const ParameterLayout& theirs) {
                const std::string text = differing_parameter(mine, theirs);
                if (!text.empty())
                  parameters.different.add(
                      concat(detail::quoted(mine.name), " ", text));
              });
  std::string problem = groups.describe("groups");
  const std::string more = parameters.describe("parameters");
  if (!problem.empty() && !more.empty()) problem += "; ";
  problem += more;
  if (!problem.empty())
    throw CheckpointError(
        concat("the file does not fit the model (", problem,
               "): declare the model as it was when the file was saved"));
}

}  // namespace kzero::detail
