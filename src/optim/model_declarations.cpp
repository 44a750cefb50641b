// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "optim/model_declarations.hpp"

#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "optim/rule_groups.hpp"
#include "optim/setup_facts.hpp"

namespace kzero::detail {
namespace {

constexpr Subject subject{"model-parallel set-up"};

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
  return concat(
      info.model_parallel == ModelParallel::split ? split_kind : "replicated, ",
      info.unmarked == Unmarked::keep ? kept_kind : "",
      to_string(rule_of_parameter(options, info)));
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

}  // namespace

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

}  // namespace kzero::detail
