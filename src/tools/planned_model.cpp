// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/planned_model.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <kzero/error.hpp>
#include <limits>
#include <set>
#include <utility>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/json_node.hpp"
#include "io/layout_json.hpp"
#include "optim/rule_groups.hpp"
#include "tools/tensor_files.hpp"

namespace kzero::tools {

namespace {

using detail::concat;
using detail::JsonNode;

using Values = std::vector<std::pair<std::string, double>>;

template <class R>
Rule rule_with(const Values& values) {
  R rule;
  // What decides which state arrays there are cannot be set later.
  for (const auto& [name, value] : values) {
    if constexpr (requires { rule.amsgrad; })
      if (name == "amsgrad") rule.amsgrad = value != 0;
    if constexpr (requires { rule.centered; })
      if (name == "centered") rule.centered = value != 0;
    if constexpr (requires { rule.momentum; })
      if (name == "momentum") rule.momentum = value;
  }
  Rule made(rule);
  for (const auto& [name, value] : values) made.set(name, value);
  return made;
}

template <class... Rs>
Rule rule_named(std::string_view name, const Values& values,
                std::variant<Rs...>*) {
  std::optional<Rule> found;
  std::string known;
  const auto look_at = [&]<class R>(std::type_identity<R>) {
    if constexpr (detail::BuiltInRule<R>) {
      const std::string own(Rule(R{}).name());
      known += concat(known.empty() ? "" : ", ", own);
      if (own == name) found = rule_with<R>(values);
    }
  };
  (look_at(std::type_identity<Rs>{}), ...);
  if (!found)
    throw InvalidArgument(concat("there is no rule ", detail::quoted(name),
                                 ": there are ", known));
  return *found;
}

Rule rule_named(std::string_view name, const Values& values) {
  return rule_named(name, values, static_cast<Rule::Variant*>(nullptr));
}

DType dtype_named(const std::string& name) {
  const auto dtype = parameter_dtype(type_named(name));
  if (!dtype) throw InvalidArgument(concat("no parameter has the type ", name));
  return *dtype;
}

void count_state(PlannedModel& model) {
  for (const ParameterInfo& info : model.parameters.parameters())
    model.state_arrays.push_back(
        info.frozen ? 0
                    : detail::rule_of_parameter(model.options, info)
                          .state_names()
                          .size());
}

/// Reads the parameters of a declared model.
class Declaration {
 public:
  Declaration(const JsonNode& root, const ModelChoices& choices,
              PlannedModel& model)
      : choices_(choices), model_(model) {
    if (root.has("type")) type_ = dtype_named(root.at("type").text());
    if (root.has("gradient_type"))
      gradient_type_ = dtype_named(root.at("gradient_type").text());
  }

  void add_all(const JsonNode& list) {
    for (const JsonNode& each : list.list()) {
      if (each.has("repeat"))
        repeat(each);
      else
        add(each, "");
    }
  }

 private:
  [[noreturn]] void refuse_so_many() const {
    throw InvalidArgument(concat("there are more than ",
                                 choices_.most_parameters, " parameters"));
  }

  void repeat(const JsonNode& node) {
    node.require_known({"repeat", "parameters"});
    const std::int64_t times = node.at("repeat").integer();
    if (times < 0)
      throw InvalidArgument(
          concat(node.path(), "/repeat is ", times, ", expected 0 or more"));
    const std::vector<JsonNode> parameters = node.at("parameters").list();
    if (!parameters.empty() &&
        times > choices_.most_parameters / std::ssize(parameters))
      refuse_so_many();
    if (parameters.empty()) return;
    for (std::int64_t i = 0; i < times; ++i)
      for (const JsonNode& each : parameters) {
        if (each.has("repeat"))
          throw InvalidArgument("repetitions within repetitions are not read");
        add(each, concat(i));
      }
  }

  void add(const JsonNode& node, const std::string& number) {
    if (model_.parameters.size() >= choices_.most_parameters) refuse_so_many();
    node.require_known({"name", "extents", "type", "gradient_type", "group",
                        "chunk", "frozen", "tied_to"});
    ParameterOptions options;
    options.dtype = type_;
    if (node.has("type")) options.dtype = dtype_named(node.at("type").text());
    options.gradient_dtype = gradient_type_;
    if (node.has("gradient_type"))
      options.gradient_dtype = dtype_named(node.at("gradient_type").text());
    if (choices_.type) options.dtype = *choices_.type;
    if (choices_.gradient_type) options.gradient_dtype = choices_.gradient_type;
    if (node.has("group")) options.group = node.at("group").text();
    if (node.has("tied_to"))
      options.tied_to = numbered(node.at("tied_to").text(), number);
    if (node.has("frozen")) options.frozen = node.at("frozen").truth();
    if (node.has("chunk")) options.chunk = chunk_of(node.at("chunk"));
    model_.parameters.add(name_of(node, number), node.at("extents").integers(),
                          std::move(options));
  }

  static int chunk_of(const JsonNode& node) {
    const std::int64_t chunk = node.integer();
    if (chunk < 0 || chunk > std::numeric_limits<int>::max())
      throw InvalidArgument(
          concat(node.path(), " is ", chunk, ", expected 0 or more"));
    return static_cast<int>(chunk);
  }

  std::string name_of(const JsonNode& node, const std::string& number) const {
    if (!node.has("name"))
      return concat("parameter ", model_.parameters.size());
    return numbered(node.at("name").text(), number);
  }

  static std::string numbered(std::string name, const std::string& number) {
    if (number.empty()) return name;
    return CLI::detail::find_and_replace(std::move(name), "{}", number);
  }

  const ModelChoices& choices_;
  PlannedModel& model_;
  DType type_ = DType::float32;
  std::optional<DType> gradient_type_;
};

/// Parameters alone.
PlannedModel model_of(const Tensors& tensors, const ModelChoices& choices) {
  PlannedModel model;
  model.options.rule = rule_named(choices.rule, {});
  for (const Tensor& tensor : tensors.tensors)
    if (const auto dtype = parameter_dtype(tensor.type))
      model.parameters.add(tensor.name, tensor.extents,
                           {.dtype = choices.type.value_or(*dtype),
                            .gradient_dtype = choices.gradient_type});
  count_state(model);
  return model;
}

PlannedModel model_of(const detail::FileLayout& layout,
                      const ModelChoices& choices) {
  PlannedModel model;
  for (const detail::ParameterLayout& parameter : layout.parameters) {
    const auto state = std::ranges::count_if(
        parameter.arrays, [](const detail::ArrayLayout& array) {
          return array.name != "value" && array.name != "main";
        });
    // A frozen one has no main parameter, and is never updated.
    const bool frozen = parameter.arrays.size() == 1 &&
                        parameter.update_count == 0 && layout.content.step > 0;
    model.state_arrays.push_back(static_cast<std::size_t>(state));
    model.parameters.add(
        parameter.name, parameter.extents,
        {.dtype = choices.type.value_or(parameter.arrays.front().dtype),
         .gradient_dtype = choices.gradient_type,
         .group = parameter.group,
         .frozen = frozen});
  }
  return model;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InvalidArgument("it cannot be opened");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

PlannedModel parse_model(std::string_view text, const ModelChoices& choices) {
  const detail::Json json = detail::parse_json(text);
  const JsonNode root(json, "");
  root.require_known({"rule", "type", "gradient_type", "groups", "parameters"});
  PlannedModel model;
  model.options.rule =
      rule_named(root.has("rule") ? root.at("rule").text() : choices.rule, {});
  if (root.has("groups"))
    for (const detail::GroupLayout& group :
         detail::groups_of(root.at("groups")))
      model.options.groups.insert_or_assign(
          group.name, rule_named(group.rule, group.hyperparameters));
  Declaration(root, choices, model).add_all(root.at("parameters"));
  count_state(model);
  return model;
}

PlannedModel read_model(const std::filesystem::path& path,
                        const ModelChoices& choices) {
  if (CLI::detail::to_lower(path.extension()) != ".json") {
    if (is_checkpoint(path)) {
      const detail::CheckpointReader reader(path, detail::Verify::yes,
                                            detail::UserArrays::left_out);
      // One that was converted has no groups.
      if (!reader.layout().groups.empty())
        return model_of(reader.layout(), choices);
    }
    return model_of(read_tensors(path, Content::values, OtherTypes::pass_over),
                    choices);
  }
  try {
    return parse_model(text_of(path), choices);
  } catch (const std::exception& error) {
    throw InvalidArgument(concat("cannot read the model ",
                                 detail::quoted(path.string()), " (",
                                 error.what(), ")"));
  }
}

}  // namespace kzero::tools
