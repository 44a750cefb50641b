// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/model_group.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <map>
#include <string_view>

#include "core/message.hpp"
#include "optim/agreement.hpp"
#include "optim/setup_facts.hpp"

namespace kzero::detail {
namespace {

constexpr Subject subject{"model-parallel set-up"};

// Words that no rule has in its name.
constexpr std::string_view split_kind = "split, ";
constexpr std::string_view kept_kind = "kept when unmarked, ";

/// What the ranks of the group tell of a parameter.
enum class Role : char { replicated = 'r', split = 's', copy = 'c' };

/// The parameter of the whole model that this one is tied to; empty for none. A
/// tie in the set and one beyond it are the same thing here.
std::string target_of(const ParameterSet& parameters, ParameterId id) {
  const ParameterInfo& info = parameters[id];
  const ParameterInfo& storage = parameters[info.storage];
  if (!storage.tied_to.empty()) return storage.tied_to;
  return info.storage == id ? std::string() : storage.name;
}

Role role_of(const ParameterSet& parameters, ParameterId id) {
  const ParameterInfo& info = parameters[id];
  if (!info.tied_to.empty()) return Role::copy;
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
      return "tied to another one";
  }
  return "unknown";
}

/// All in words, to be compared and shown.
struct Declaration {
  int rank = 0;
  Role role = Role::replicated;
  std::string shape;    // type and extents
  std::string kind;     // what else a parameter has the same everywhere
  std::string tied_to;  // name of what it is a copy of
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

std::string kind_of(const ParameterInfo& info,
                    const OptimizerOptions& options) {
  if (info.frozen) return "frozen";
  const auto own = options.groups.find(info.group);
  return concat(
      info.model_parallel == ModelParallel::split ? split_kind : "replicated, ",
      info.unmarked == Unmarked::keep ? kept_kind : "",
      to_string(own == options.groups.end() ? options.rule : own->second));
}

std::string serialize(const ParameterSet& parameters,
                      const OptimizerOptions& options) {
  std::string bytes;
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    put(bytes, info.name);
    put(bytes, std::string(1, static_cast<char>(role_of(parameters, {i}))));
    put(bytes, concat(info.dtype, std::span<const std::int64_t>(info.extents)));
    put(bytes, kind_of(info, options));
    put(bytes, target_of(parameters, {i}));
  }
  return bytes;
}

Declarations gather_declarations(Communicator& group,
                                 const ParameterSet& parameters,
                                 const OptimizerOptions& options) {
  const std::string mine = serialize(parameters, options);
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
      declaration.kind = take(rest);
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
  if (first.kind != other.kind || first.tied_to != other.tied_to) {
    const auto in_all_words = [](const Declaration& each) {
      return each.tied_to.empty()
                 ? each.kind
                 : concat(each.kind, ", tied to ", quoted(each.tied_to));
    };
    throw InvalidArgument(
        concat("parameter ", quoted(name), " is ", in_all_words(first),
               " on model-parallel rank ", first.rank, " and ",
               in_all_words(other), " on rank ", other.rank,
               ": one parameter is declared alike everywhere"));
  }
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
    if (each->second.kind != copy.kind)
      throw InvalidArgument(
          concat("parameter ", quoted(name), " on model-parallel rank ",
                 copy.rank, " is ", copy.kind, ", but ", quoted(copy.tied_to),
                 ", which it is tied to, is ", each->second.kind, " on rank ",
                 each->second.rank, ": declare copies alike"));
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
    if (!info.tied_to.empty() && info.storage.index == i)
      throw InvalidArgument(concat(
          "parameter ", quoted(info.name), " is tied to ", quoted(info.tied_to),
          ", which this set does not have: declare that one first, or give "
          "OptimizerOptions::model_parallel when another rank has it"));
    model.counted.push_back(info.storage.index == i ? 1 : 0);
    model.split_place.push_back(-1);
    model.keep_place.push_back(-1);
  }
  return model;
}

namespace {

/// Two ranks of one data-parallel group would count everything twice.
void require_other_data(Communicator& group, std::uint64_t data_group) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather(&data_group, sizeof data_group, all.data(), subject);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto same =
        std::find(all.begin(), all.begin() + std::ptrdiff_t(i), all[i]);
    if (same != all.begin() + std::ptrdiff_t(i))
      throw InvalidArgument(concat(
          "ranks ", same - all.begin(), " and ", i,
          " of the model-parallel group belong to one optimizer communicator "
          "(expected every rank to have another one): the group holds one rank "
          "of each part of the model"));
  }
}

/// Numbers the parameters that several ranks hold, under their own name or as a
/// copy.
class Places {
 public:
  /// Of those whose kind, in words, has this one.
  Places(const Declarations& all, std::string_view kind) {
    std::map<std::string_view, std::int64_t> holders;
    for (const auto& [name, declaration] : all)
      if (declaration.kind.find(kind) != std::string::npos)
        ++holders[declaration.tied_to.empty() ? name : declaration.tied_to];
    for (const auto& [name, count] : holders)
      if (count > 1) places_.emplace(name, std::ssize(places_));
  }

  std::int64_t count() const { return std::ssize(places_); }
  std::int64_t of(std::string_view name) const {
    const auto place = places_.find(name);
    return place == places_.end() ? -1 : place->second;
  }

 private:
  std::map<std::string_view, std::int64_t> places_;
};

}  // namespace

ModelGroup agree_on_model(Communicator& group, const ParameterSet& parameters,
                          const OptimizerOptions& options,
                          std::uint64_t data_group,
                          const std::string& problem) {
  require_agreement(
      group, subject,
      [&](const auto& fact) { for_each_shared_option(options, fact); },
      problem);
  // From here on every rank of the group knows the same and throws alike.
  require_other_data(group, data_group);
  const Declarations all = gather_declarations(group, parameters, options);
  check(all);
  const Places split(all, split_kind);
  const Places kept(all, kept_kind);
  ModelGroup model;
  model.split_count = split.count();
  model.keep_count = kept.count();
  for (std::int64_t i = 0; i < parameters.size(); ++i) {
    const ParameterInfo& info = parameters[{i}];
    const Role role = role_of(parameters, {i});
    const bool counts =
        role == Role::split ||
        (role == Role::replicated &&
         all.lower_bound(info.name)->second.rank == group.rank());
    const std::string target = target_of(parameters, {i});
    const std::string_view whole = target.empty() ? info.name : target;
    model.counted.push_back(counts ? 1 : 0);
    model.split_place.push_back(split.of(whole));
    model.keep_place.push_back(info.unmarked == Unmarked::keep ? kept.of(whole)
                                                               : -1);
  }
  return model;
}

}  // namespace kzero::detail
