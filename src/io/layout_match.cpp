// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/layout_match.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <string_view>
#include <unordered_set>

#include "core/message.hpp"
#include "io/by_name.hpp"

namespace kzero::detail {

namespace {

constexpr std::size_t shown = 4;  // of each kind

/// Names of one kind of difference; the first few are shown.
class NameList {
 public:
  void add(std::string text) {
    if (++count_ <= shown) shown_.push_back(std::move(text));
  }

  template <class... What>
  void describe(std::string& message, const What&... what) const {
    if (count_ == 0) return;
    message += concat(message.empty() ? "" : "; ", what...);
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

  void describe(std::string_view things, std::string_view medium,
                std::string& text) const {
    missing.describe(text, things, " missing in the ", medium, ":");
    unexpected.describe(text, things, " that the model does not have:");
    different.describe(text, things, " that differ:");
  }
};

const ArrayLayout* find_array(const ParameterLayout& parameter,
                              std::string_view name) {
  const auto place =
      std::ranges::find(parameter.arrays, name, &ArrayLayout::name);
  return place == parameter.arrays.end() ? nullptr : &*place;
}

enum class Compare { all, main_only };

std::string_view name_of(Medium medium) {
  switch (medium) {
    case Medium::text:
      return "text";
    case Medium::state:
      return "state";
    case Medium::file:
      break;
  }
  return "file";
}

std::string differing_arrays(const ParameterLayout& model,
                             const ParameterLayout& file, Compare compare,
                             Medium medium) {
  const auto left_out = [&](const ArrayLayout& array) {
    return compare == Compare::main_only && array.name != "main";
  };
  Differences differences;
  for (const ArrayLayout& mine : model.arrays) {
    if (left_out(mine)) continue;
    const ArrayLayout* theirs = find_array(file, mine.name);
    if (theirs == nullptr)
      differences.missing.add(detail::quoted(mine.name));
    else if (mine.dtype != theirs->dtype)
      differences.different.add(concat(detail::quoted(mine.name), " is ",
                                       theirs->dtype, ", expected ",
                                       mine.dtype));
  }
  for (const ArrayLayout& theirs : file.arrays)
    if (!left_out(theirs) && find_array(model, theirs.name) == nullptr)
      differences.unexpected.add(detail::quoted(theirs.name));
  std::string text;
  differences.describe("arrays", name_of(medium), text);
  return text;
}

std::string differing_shape(const ParameterLayout& model,
                            const ParameterLayout& file) {
  if (model.extents != file.extents)
    return concat("has the shape ", std::span(file.extents), ", expected ",
                  std::span(model.extents));
  const DType expected = model.arrays.front().dtype;
  const DType got = file.arrays.front().dtype;
  if (expected != got) return concat("is ", got, ", expected ", expected);
  return {};
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

std::string differing_hyperparameters(const GroupLayout& model,
                                      const GroupLayout& file) {
  const auto missing = names_only_in(model, file);
  if (!missing.empty())
    return concat("lacks the hyperparameter ", detail::quoted(missing.front()));
  const auto unknown = names_only_in(file, model);
  if (!unknown.empty())
    return concat("has the hyperparameter ", detail::quoted(unknown.front()),
                  ", which the rule does not know");
  return {};
}

class Matcher {
 public:
  Matcher(const FileLayout& model, const FileLayout& file,
          const LoadOptions& options, Medium medium)
      : model_(model),
        file_(file),
        options_(options),
        medium_(medium),
        file_groups_(file.groups),
        model_groups_(model.groups) {}

  LayoutMatch match() {
    match_groups();
    match_parameters();
    throw_differences();
    return std::move(match_);
  }

 private:
  bool strict() const { return options_.match == Match::strict; }

  void match_groups() {
    for (const GroupLayout& mine : model_.groups) {
      const GroupLayout* theirs = file_groups_.find(mine.name);
      match_.groups.push_back(theirs);
      if (theirs == nullptr) {
        if (strict()) groups_.missing.add(detail::quoted(mine.name));
      } else if (theirs->rule != mine.rule) {
        match_.groups.back() = nullptr;
        if (options_.other_rule == OtherRule::start_anew) continue;
        rules_.add(concat(detail::quoted(mine.name), " has the rule ",
                          detail::quoted(theirs->rule), ", expected ",
                          detail::quoted(mine.rule)));
      } else if (strict()) {
        const std::string text = differing_hyperparameters(mine, *theirs);
        if (!text.empty())
          groups_.different.add(concat(detail::quoted(mine.name), " ", text));
      }
    }
    if (!strict()) return;
    for (const GroupLayout& theirs : file_.groups)
      if (model_groups_.find(theirs.name) == nullptr)
        groups_.unexpected.add(detail::quoted(theirs.name));
  }

  void match_parameters() {
    ByName in_file(file_.parameters);
    match_.parameters.reserve(model_.parameters.size());
    for (const ParameterLayout& mine : model_.parameters) {
      const ParameterLayout* theirs = in_file.find(mine.name);
      match_.parameters.emplace_back();
      if (theirs == nullptr) {
        match_.missing.push_back(mine.name);
        if (strict()) parameters_.missing.add(detail::quoted(mine.name));
        continue;
      }
      std::string text = differing_shape(mine, *theirs);
      if (!text.empty())
        match_.misshaped.push_back(mine.name);
      else
        text = match_parameter(mine, *theirs, match_.parameters.back());
      if (strict() && !text.empty())
        parameters_.different.add(concat(detail::quoted(mine.name), " ", text));
    }
    ByName in_model(model_.parameters);
    const std::unordered_set<std::string_view> tied(model_.tied.begin(),
                                                    model_.tied.end());
    for (const ParameterLayout& theirs : file_.parameters) {
      if (in_model.find(theirs.name) != nullptr || tied.contains(theirs.name))
        continue;
      match_.extra.push_back(theirs.name);
      if (strict()) parameters_.unexpected.add(detail::quoted(theirs.name));
    }
  }

  /// Returns what is different all the same.
  std::string match_parameter(const ParameterLayout& mine,
                              const ParameterLayout& theirs,
                              ParameterMatch& match) {
    const bool same_rule = have_same_rule(mine, theirs);
    const std::string arrays = differing_arrays(
        mine, theirs, same_rule ? Compare::all : Compare::main_only, medium_);
    match.in_file = &theirs;
    match.anew = !same_rule || !arrays.empty();
    match.sources.reserve(mine.arrays.size());
    for (const ArrayLayout& array : mine.arrays)
      match.sources.push_back(source_of(array, theirs, match.anew));
    if (mine.group != theirs.group)
      return concat("is in the group ", detail::quoted(theirs.group),
                    ", expected ", detail::quoted(mine.group));
    return arrays;
  }

  bool have_same_rule(const ParameterLayout& mine,
                      const ParameterLayout& theirs) {
    const GroupLayout* my_group = model_groups_.find(mine.group);
    const GroupLayout* their_group = file_groups_.find(theirs.group);
    return my_group != nullptr && their_group != nullptr &&
           my_group->rule == their_group->rule;
  }

  static ElementSource source_of(const ArrayLayout& array,
                                 const ParameterLayout& file, bool anew) {
    if (array.name == "value") return ElementSource::file;
    if (array.name != "main")
      return anew ? ElementSource::zeros : ElementSource::file;
    const ArrayLayout* theirs = find_array(file, "main");
    return theirs != nullptr && theirs->dtype == array.dtype
               ? ElementSource::file
               : ElementSource::value;
  }

  void throw_differences() const {
    const std::string_view medium = name_of(medium_);
    std::string others;
    groups_.describe("groups", medium, others);
    parameters_.describe("parameters", medium, others);
    std::string problem;
    rules_.describe(problem, "groups of another rule:");
    if (problem.empty() && others.empty()) return;
    std::string advice =
        concat("declare the model as it was when the ", medium, " was made");
    if (medium_ != Medium::text && !problem.empty())
      advice +=
          ", or set LoadOptions::other_rule = OtherRule::start_anew, which "
          "loads the parameters and starts the state anew";
    if (medium_ != Medium::text && !others.empty())
      advice +=
          ", or set LoadOptions::match = Match::partial, which loads what they "
          "share";
    if (!problem.empty() && !others.empty()) problem += "; ";
    throw CheckpointError(concat("the ", medium, " does not fit the model (",
                                 problem, others, "): ", advice));
  }

  const FileLayout& model_;
  const FileLayout& file_;
  const LoadOptions options_;
  const Medium medium_;
  ByName<GroupLayout> file_groups_;
  ByName<GroupLayout> model_groups_;
  NameList rules_;  // that are refused
  Differences groups_;
  Differences parameters_;
  LayoutMatch match_;
};

}  // namespace

LayoutMatch match_layouts(const FileLayout& model, const FileLayout& file,
                          const LoadOptions& options, Medium medium) {
  return Matcher(model, file, options, medium).match();
}

}  // namespace kzero::detail
