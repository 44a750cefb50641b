// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/declaration_checks.hpp"

#include "core/message.hpp"

namespace kzero::detail {
namespace {

constexpr std::size_t maximum_extents = 8;

bool known(DType dtype) { return dtype <= DType::float64; }

}  // namespace

void refuse_parameter(std::string_view name, std::string_view problem) {
  throw InvalidArgument(concat("parameter ", quoted(name), ": ", problem));
}

void check_dtypes(std::string_view name, DType dtype, DType gradient_dtype) {
  for (const DType type : {dtype, gradient_dtype}) {
    if (!known(type))
      refuse_parameter(
          name, concat("unknown number type (expected a code from 0 to 3, "
                       "got ",
                       static_cast<int>(type), "): use a DType"));
  }
}

std::int64_t checked_size(std::string_view name,
                          std::span<const std::int64_t> extents, DType dtype) {
  if (extents.size() > maximum_extents)
    refuse_parameter(
        name, concat("too many extents (expected at most ", maximum_extents,
                     ", got ", extents.size(), "): join some of them"));
  bool empty = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0)
      refuse_parameter(
          name, concat("negative extent (expected zero or more, got ", extents,
                       "): give the number of elements"));
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  const std::int64_t limit = maximum_bytes / size_of(dtype);
  std::int64_t size = 1;
  for (const std::int64_t extent : extents) {
    if (extent > limit / size)
      refuse_parameter(
          name, concat("too large (expected at most 2^62 bytes, got extents ",
                       extents, " of ", dtype,
                       "): check the extents or split the parameter"));
    size *= extent;
  }
  return size;
}

void check_options(std::string_view name, const ParameterOptions& options) {
  if (options.group.empty())
    refuse_parameter(
        name,
        "empty group name (expected a name, got \"\"): leave group out for "
        "the group \"default\"");
  if (options.chunk < 0)
    refuse_parameter(name,
                     concat("negative chunk (expected zero or more, got ",
                            options.chunk, "): number the chunks from 0"));
  if (options.model_parallel < ModelParallel::replicated ||
      options.model_parallel > ModelParallel::split)
    refuse_parameter(
        name, concat("unknown ModelParallel (expected a code from 0 to 1, "
                     "got ",
                     static_cast<int>(options.model_parallel),
                     "): use an enumerator"));
  if (options.unmarked < Unmarked::zero || options.unmarked > Unmarked::keep)
    refuse_parameter(
        name,
        concat("unknown Unmarked (expected a code from 0 to 1, got ",
               static_cast<int>(options.unmarked), "): use an enumerator"));
}

void require_same(const ParameterInfo& tied, const ParameterInfo& target) {
  const auto require = [&](bool same, std::string_view what, const auto& got,
                           const auto& expected) {
    if (!same)
      refuse_parameter(
          tied.name,
          concat("tied to ", quoted(target.name), ", but differs from it (",
                 what, ": expected ", expected, ", got ", got,
                 "): declare both alike, they are one storage"));
  };
  require(tied.extents == target.extents, "extents", tied.extents,
          target.extents);
  require(tied.dtype == target.dtype, "type", tied.dtype, target.dtype);
  require(tied.gradient_dtype == target.gradient_dtype, "gradient type",
          tied.gradient_dtype, target.gradient_dtype);
  require(tied.group == target.group, "group", quoted(tied.group),
          quoted(target.group));
  require(tied.chunk == target.chunk, "chunk", tied.chunk, target.chunk);
  require(tied.model_parallel == target.model_parallel, "model_parallel",
          static_cast<int>(tied.model_parallel),
          static_cast<int>(target.model_parallel));
  require(tied.unmarked == target.unmarked, "unmarked",
          static_cast<int>(tied.unmarked), static_cast<int>(target.unmarked));
  require(tied.frozen == target.frozen, "frozen", int(tied.frozen),
          int(target.frozen));
}

}  // namespace kzero::detail
