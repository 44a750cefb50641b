// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "layout/external_checks.hpp"

#include <algorithm>
#include <utility>

#include "core/message.hpp"
#include "layout/declaration_checks.hpp"

namespace kzero::detail {
namespace {

struct Extent {
  std::int64_t count = 0;
  std::int64_t stride = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// Where an array lies, in bytes; nowhere, when it has no elements.
struct Footprint {
  std::int64_t begin = 0;
  std::int64_t element = 0;
  std::int64_t size = 0;        // from the first byte behind the last one
  std::vector<Extent> extents;  // above 1, descending strides
};

/// Names what it looks at in messages.
class ArrayCheck {
 public:
  ArrayCheck(std::string_view name, std::string_view what,
             const ExternalArray& array)
      : name_(name), what_(what), array_(array) {}

  Footprint footprint() const {
    Footprint print;
    if (array_.size() == 0) return print;
    print.begin =
        static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(array_.data));
    print.element = size_of(array_.dtype);
    check_address(print);
    print.extents = ascending_extents();
    std::int64_t last = 0;  // element of those looked at
    for (Extent& extent : print.extents) {
      check_stride(extent, last, maximum_bytes / print.element - 1);
      last += extent.stride * (extent.count - 1);
      extent.stride *= print.element;
    }
    std::reverse(print.extents.begin(), print.extents.end());
    print.size = (last + 1) * print.element;
    return print;
  }

 private:
  void check_address(const Footprint& print) const {
    if (array_.data == nullptr)
      refuse(concat("is null (expected memory of ", array_.size(),
                    " elements): allocate it before it is declared"));
    if (print.begin % print.element != 0)
      refuse(concat("is not aligned (", array_.dtype,
                    " needs an address that is a multiple of ", print.element,
                    "): give the address of an element"));
  }

  std::vector<Extent> ascending_extents() const {
    std::vector<Extent> extents;
    for (std::size_t d = 0; d < array_.extents.size(); ++d)
      if (array_.extents[d] > 1)
        extents.push_back({array_.extents[d], array_.strides[d]});
    std::sort(
        extents.begin(), extents.end(),
        [](const Extent& a, const Extent& b) { return a.stride < b.stride; });
    return extents;
  }

  /// All smaller ones together reach the element last.
  void check_stride(const Extent& extent, std::int64_t last,
                    std::int64_t limit) const {
    if (extent.stride <= 0)
      refuse(concat("has ", strides(),
                    ", expected positive ones where there is more than one "
                    "index: give a view with its indices the other way round, "
                    "or a copy"));
    if (extent.stride <= last)
      refuse(concat("has ", strides(),
                    ", under which elements share memory: give each element a "
                    "place of its own"));
    if (extent.stride > (limit - last) / (extent.count - 1))
      refuse(concat("has ", strides(),
                    ", which reach too far (expected at most 2^62 bytes): "
                    "check the strides, they count elements"));
  }

  [[noreturn]] void refuse(std::string_view problem) const {
    refuse_parameter(name_, concat("the ", what_, " ", problem));
  }

  std::string strides() const {
    return concat("strides ", array_.strides, " for extents ", array_.extents);
  }

  std::string_view name_;
  std::string_view what_;
  const ExternalArray& array_;
};

/// Whether sums of differences of indices, times strides, reach into [low,
/// high]. Each stride is larger than what all smaller ones reach, so that few
/// differences of an index can lead there.
bool reaches(std::span<const Extent> extents, std::int64_t low,
             std::int64_t high) {
  if (extents.empty()) return low <= 0 && high >= 0;
  std::int64_t rest = 0;
  for (const Extent& extent : extents.subspan(1))
    rest += (extent.count - 1) * extent.stride;
  const Extent& first = extents.front();
  // One more on both sides: division rounds towards zero.
  const std::int64_t most = first.count - 1;
  const std::int64_t begin = std::max(-most, (low - rest) / first.stride - 1);
  const std::int64_t end = std::min(most, (high + rest) / first.stride + 1);
  for (std::int64_t i = begin; i <= end; ++i)
    if (low - i * first.stride <= rest && high - i * first.stride >= -rest &&
        reaches(extents.subspan(1), low - i * first.stride,
                high - i * first.stride))
      return true;
  return false;
}

/// Exact where both have the same strides, as fields of one array of structs
/// have; else whether one lies between the other's first and last byte.
bool share_memory(const Footprint& a, const Footprint& b) {
  if (a.begin + a.size <= b.begin || b.begin + b.size <= a.begin ||
      a.size == 0 || b.size == 0)
    return false;
  if (a.extents != b.extents) return true;
  const std::int64_t distance = b.begin - a.begin;
  return reaches(a.extents, distance - a.element + 1, distance + b.element - 1);
}

ExternalArray with_strides(std::string_view name, std::string_view what,
                           ExternalArray array) {
  static_cast<void>(checked_size(name, array.extents, array.dtype));
  const std::size_t rank = array.extents.size();
  if (array.strides.empty()) {
    array.strides.assign(rank, 1);
    for (std::size_t d = rank; array.size() > 0 && d-- > 1;)
      array.strides[d - 1] = array.strides[d] * array.extents[d];
  } else if (array.strides.size() != rank) {
    refuse_parameter(
        name, concat("the ", what, " has another number of strides (expected ",
                     rank, ", one an extent, got ", array.strides.size(),
                     "): give all, or none for C order"));
  }
  return array;
}

void require_type(std::string_view name, std::string_view option, DType asked,
                  DType own) {
  if (asked != own)
    refuse_parameter(
        name, concat("ParameterOptions::", option, " is ", asked,
                     ", but the memory given holds ", own,
                     ": leave it out, the type is taken from the memory"));
}

bool same_place(const ExternalArray& a, const ExternalArray& b) {
  if (a.size() == 0) return true;
  for (std::size_t d = 0; d < a.extents.size(); ++d)
    if (a.extents[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return a.data == b.data;
}

}  // namespace

ExternalStorage checked_external(std::string_view name, ExternalArray value,
                                 const ExternalArray* gradient,
                                 ParameterOptions& options) {
  if (gradient == nullptr && !options.frozen)
    refuse_parameter(name,
                     "its value lies in memory of your own, but there is no "
                     "gradient: give its memory too, or declare the parameter "
                     "as frozen");
  check_dtypes(name, value.dtype,
               gradient != nullptr ? gradient->dtype : value.dtype);
  if (options.dtype != ParameterOptions().dtype)
    require_type(name, "dtype", options.dtype, value.dtype);
  options.dtype = value.dtype;
  ExternalStorage storage;
  storage.value = with_strides(name, "value", std::move(value));
  const Footprint of_value =
      ArrayCheck(name, "value", storage.value).footprint();
  if (gradient == nullptr) return storage;

  if (options.gradient_dtype)
    require_type(name, "gradient_dtype", *options.gradient_dtype,
                 gradient->dtype);
  options.gradient_dtype = gradient->dtype;
  if (gradient->extents != storage.value.extents)
    refuse_parameter(
        name, concat("value and gradient differ in their extents (expected ",
                     storage.value.extents, ", got ", gradient->extents,
                     "): give the gradient the shape of the value"));
  storage.gradient = with_strides(name, "gradient", *gradient);
  const Footprint of_gradient =
      ArrayCheck(name, "gradient", storage.gradient).footprint();
  if (share_memory(of_value, of_gradient))
    refuse_parameter(name,
                     "value and gradient share memory: give each memory of "
                     "its own");
  if (options.frozen) storage.gradient = {};
  return storage;
}

void require_same_memory(const ParameterInfo& tied,
                         const ParameterInfo& target) {
  if (target.external &&
      same_place(tied.external->value, target.external->value) &&
      (tied.frozen ||
       same_place(tied.external->gradient, target.external->gradient)))
    return;
  refuse_parameter(
      tied.name,
      concat("tied to ", quoted(target.name), ", which lies in ",
             target.external ? "other memory" : "memory of the optimizer",
             ": declare it with the same memory, or by its extents alone"));
}

}  // namespace kzero::detail
