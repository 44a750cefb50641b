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

bool have_same_type(const ParameterLayout& model, const ParameterLayout& file) {
  return model.arrays.front().dtype == file.arrays.front().dtype;
}

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
                             OtherType other_type, Medium medium) {
  // Of another type, a main parameter can be there on one side alone.
  const bool same_type = have_same_type(model, file);
  const auto left_out = [&](const ArrayLayout& array) {
    return array.name == "main" ? !same_type : compare == Compare::main_only;
  };
  Differences differences;
  for (const ArrayLayout& mine : model.arrays) {
    if (left_out(mine)) continue;
    const ArrayLayout* theirs = find_array(file, mine.name);
    if (theirs == nullptr)
      differences.missing.add(detail::quoted(mine.name));
    else if (mine.dtype != theirs->dtype && other_type == OtherType::refuse)
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
  return {};
}

std::string differing_type(const ParameterLayout& model,
                           const ParameterLayout& file) {
  if (have_same_type(model, file)) return {};
  return concat("is ", file.arrays.front().dtype, ", expected ",
                model.arrays.front().dtype);
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
  bool weights_only() const { return options_.weights_only; }
  bool converts() const { return options_.other_type == OtherType::convert; }

  void match_groups() {
    if (weights_only()) {
      match_.groups.assign(model_.groups.size(), nullptr);
      return;
    }
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
      if (text.empty() && !converts()) {
        text = differing_type(mine, *theirs);
        has_other_types_ |= !text.empty();
      }
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
    const bool same_rule = !weights_only() && have_same_rule(mine, theirs);
    std::string arrays;
    if (!weights_only())
      arrays = differing_arrays(mine, theirs,
                                same_rule ? Compare::all : Compare::main_only,
                                options_.other_type, medium_);
    match.in_file = &theirs;
    match.anew = !same_rule || !arrays.empty();
    match.origins.reserve(mine.arrays.size());
    for (const ArrayLayout& array : mine.arrays)
      match.origins.push_back(origin_of(array, mine, theirs, match.anew));
    if (!weights_only() && mine.group != theirs.group)
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

  ElementOrigin origin_of(const ArrayLayout& array,
                          const ParameterLayout& model,
                          const ParameterLayout& file, bool anew) const {
    const bool is_state = array.name != "value" && array.name != "main";
    if (is_state && anew) return {};
    if (!is_state && !have_same_type(model, file)) {
      const ArrayLayout* main = find_array(file, "main");
      if (main != nullptr) return {ElementSource::file_main, main->dtype};
      return {ElementSource::file_value, file.arrays.front().dtype};
    }
    const ArrayLayout* theirs = find_array(file, array.name);
    if (theirs != nullptr && (theirs->dtype == array.dtype || converts()))
      return {ElementSource::file, theirs->dtype};
    return {ElementSource::value};
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
    if (medium_ != Medium::text && file_.groups.empty() && strict())
      advice +=
          ", or set LoadOptions::weights_only, which loads the parameters of a "
          "file that has nothing else";
    if (medium_ != Medium::text && !problem.empty())
      advice +=
          ", or set LoadOptions::other_rule = OtherRule::start_anew, which "
          "loads the parameters and starts the state anew";
    if (medium_ != Medium::text && has_other_types_ && strict())
      advice +=
          ", or set LoadOptions::other_type = OtherType::convert, which loads "
          "parameters of another number type";
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
  bool has_other_types_ = false;
  LayoutMatch match_;
};

}  // namespace

ArrayLayout array_in_file(const ArrayLayout& array,
                          const ElementOrigin& origin) {
  switch (origin.source) {
    case ElementSource::file_value:
      return {"value", origin.dtype};
    case ElementSource::file_main:
      return {"main", origin.dtype};
    default:
      return {array.name, origin.dtype};
  }
}

LayoutMatch match_layouts(const FileLayout& model, const FileLayout& file,
                          const LoadOptions& options, Medium medium) {
  return Matcher(model, file, options, medium).match();
}

}  // namespace kzero::detail
