// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/model_group.hpp"

#include <kzero/error.hpp>
#include <map>
#include <string_view>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/setup_facts.hpp"

namespace kzero::detail {
namespace {

constexpr Subject subject{"model-parallel set-up"};

/// What the ranks of the group tell of a parameter.
enum class Role : char { replicated = 'r', split = 's', copy = 'c' };

Role role_of(const ParameterInfo& info, ParameterId id) {
  if (!info.tied_to.empty() && info.storage == id) return Role::copy;
  return info.model_parallel == ModelParallel::split ? Role::split
                                                     : Role::replicated;
}

const char* in_words(Role role) {
  switch (role) {
    case Role::replicated:
      return "replicated";
    case Role::split:
      return "split";
    case Role::copy:
      return "tied to another rank's";
  }
  return "unknown";
}

struct Declaration {
  int rank = 0;
  Role role = Role::replicated;
  std::string shape;  // type and extents, in words
  std::string tied_to;
};

using Declarations = std::multimap<std::string, Declaration, std::less<>>;

void put(std::string& bytes, std::string_view text) {
  const auto size = static_cast<std::int64_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
}

std::string take(std::string_view& bytes) {
  std::int64_t size = 0;
  bytes.copy(reinterpret_cast<char*>(&size), sizeof size);
  std::string text(bytes.substr(sizeof size, static_cast<std::size_t>(size)));
  bytes.remove_prefix(sizeof size + text.size());
  return text;
}

std::string serialize(const ParameterSet& parameters) {
  std::string bytes;
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    put(bytes, info.name);
    put(bytes, std::string(1, static_cast<char>(role_of(info, {i}))));
    put(bytes, concat(info.dtype, std::span<const std::int64_t>(info.extents)));
    put(bytes, info.tied_to);
  }
  return bytes;
}

Declarations gather_declarations(Communicator& group,
                                 const ParameterSet& parameters) {
  const std::string mine = serialize(parameters);
  Declarations all;
  for (int rank = 0; rank < group.size(); ++rank) {
    std::string bytes = rank == group.rank() ? mine : std::string();
    auto size = static_cast<std::int64_t>(bytes.size());
    group.broadcast(&size, sizeof size, rank, subject);
    bytes.resize(static_cast<std::size_t>(size));
    group.broadcast(bytes.data(), size, rank, subject);
    for (std::string_view rest = bytes; !rest.empty();) {
      std::string name = take(rest);
      Declaration declaration;
      declaration.rank = rank;
      declaration.role = static_cast<Role>(take(rest).front());
      declaration.shape = take(rest);
      declaration.tied_to = take(rest);
      all.emplace(std::move(name), std::move(declaration));
    }
  }
  return all;
}

/// All declarations of one name go together. They come in rank order.
void check_name(const std::string& name, const Declaration& first,
                const Declaration& other) {
  if (first.role != other.role)
    throw InvalidArgument(
        concat("parameter ", quoted(name), " is ", in_words(first.role),
               " on model-parallel rank ", first.rank, " and ",
               in_words(other.role), " on rank ", other.rank,
               ": names are those of the whole model, declare one parameter "
               "alike everywhere"));
  if (first.role == Role::replicated && first.shape != other.shape)
    throw InvalidArgument(
        concat("parameter ", quoted(name), " is replicated, but ", first.shape,
               " on model-parallel rank ", first.rank, " and ", other.shape,
               " on rank ", other.rank,
               ": declare it as split where ranks hold parts of it, and give "
               "other parameters other names"));
}

void check_copy(const Declarations& all, const std::string& name,
                const Declaration& copy) {
  const auto [begin, end] = all.equal_range(copy.tied_to);
  if (begin == end)
    throw InvalidArgument(
        concat("parameter ", quoted(name), " on model-parallel rank ",
               copy.rank, " is tied to ", quoted(copy.tied_to),
               ", which no rank of the group has: name one that is there"));
  bool same_shape = false;
  for (auto each = begin; each != end; ++each) {
    if (each->second.role == Role::copy)
      throw InvalidArgument(concat("parameter ", quoted(name), " is tied to ",
                                   quoted(copy.tied_to), ", which is tied to ",
                                   quoted(each->second.tied_to),
                                   " itself: tie both to that"));
    same_shape = same_shape || each->second.shape == copy.shape;
  }
  if (!same_shape)
    throw InvalidArgument(
        concat("parameter ", quoted(name), " on model-parallel rank ",
               copy.rank, " is ", copy.shape, ", but ", quoted(copy.tied_to),
               ", which it is tied to, is ", begin->second.shape, " on rank ",
               begin->second.rank, ": copies have one shape and type"));
}

void check(const Declarations& all) {
  const std::string* name = nullptr;
  const Declaration* first = nullptr;
  for (const auto& [each, declaration] : all) {
    if (name == nullptr || *name != each) {
      name = &each;
      first = &declaration;
    } else {
      check_name(each, *first, declaration);
    }
    if (declaration.role == Role::copy) check_copy(all, each, declaration);
  }
}

void for_each_shared_option(const OptimizerOptions& options, const Fact& fact) {
  for_each_setup_fact(ParameterSet(), options,
                      [&](std::string_view name, std::string_view value) {
                        // Groups and buckets are a rank's own business.
                        if (name == "clip_norm" || name == "nonfinite" ||
                            name == "scaler" || name == "reduction" ||
                            name == "library version")
                          fact(name, value);
                      });
}

}  // namespace

ModelGroup single_model(const ParameterSet& parameters) {
  ModelGroup model;
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    if (role_of(info, {i}) == Role::copy)
      throw InvalidArgument(concat(
          "parameter ", quoted(info.name), " is tied to ", quoted(info.tied_to),
          ", which this set does not have: declare that one first, or give "
          "OptimizerOptions::model_parallel when another rank has it"));
    model.counted.push_back(info.storage.index == i ? 1 : 0);
    model.split_place.push_back(-1);
  }
  return model;
}

ModelGroup agree_on_model(Communicator& group, const ParameterSet& parameters,
                          const OptimizerOptions& options,
                          const std::string& problem) {
  require_agreement(
      group, subject,
      [&](const auto& fact) { for_each_shared_option(options, fact); },
      problem);
  // From here on every rank of the group knows the same and throws alike.
  const Declarations all = gather_declarations(group, parameters);
  check(all);
  ModelGroup model;
  std::map<std::string_view, std::int64_t> split;  // in several pieces
  for (auto each = all.begin(); each != all.end();
       each = all.upper_bound(each->first))
    if (each->second.role == Role::split && all.count(each->first) > 1)
      split.emplace(each->first, model.split_count++);
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    const Role role = role_of(info, {i});
    const bool counts =
        info.storage.index == i &&
        (role == Role::split ||
         (role == Role::replicated &&
          all.lower_bound(info.name)->second.rank == group.rank()));
    model.counted.push_back(counts ? 1 : 0);
    const auto place = split.find(info.name);
    model.split_place.push_back(place == split.end() ? -1 : place->second);
  }
  return model;
}

}  // namespace kzero::detail
