// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Something for each array of each parameter, in one piece of memory: there can
// be very many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kzero::detail {

/// One array of a layout.
struct ArrayIndex {
  std::size_t parameter = 0;
  std::size_t array = 0;
};

/// As a list of lists: of each parameter, each array.
template <class T>
class ByArray {
 public:
  void reserve(std::size_t parameters, std::size_t arrays) {
    ends_.reserve(parameters);
    values_.reserve(arrays);
  }
  /// Of one more parameter, for so many arrays.
  std::span<T> add(std::size_t arrays) {
    values_.resize(values_.size() + arrays);
    ends_.push_back(static_cast<std::int64_t>(values_.size()));
    return (*this)[ends_.size() - 1];
  }
  void add(std::span<const T> arrays) {
    values_.insert(values_.end(), arrays.begin(), arrays.end());
    ends_.push_back(static_cast<std::int64_t>(values_.size()));
  }

  /// How many parameters.
  std::size_t size() const { return ends_.size(); }
  std::span<T> operator[](std::size_t parameter) {
    return std::span(values_).subspan(begin(parameter), count(parameter));
  }
  std::span<const T> operator[](std::size_t parameter) const {
    return std::span(values_).subspan(begin(parameter), count(parameter));
  }
  T& operator[](ArrayIndex index) { return values_[place(index)]; }
  const T& operator[](ArrayIndex index) const { return values_[place(index)]; }

  /// Where an array is among those of all parameters.
  std::size_t place(ArrayIndex index) const {
    return begin(index.parameter) + index.array;
  }
  const std::vector<T>& all() const { return values_; }

  /// Calls f(member) for what it consists of.
  template <class F>
  void for_each_member(F&& f) {
    f(ends_);
    f(values_);
  }

 private:
  std::size_t begin(std::size_t parameter) const {
    return parameter == 0 ? 0 : static_cast<std::size_t>(ends_[parameter - 1]);
  }
  std::size_t count(std::size_t parameter) const {
    return static_cast<std::size_t>(ends_[parameter]) - begin(parameter);
  }

  std::vector<std::int64_t> ends_;  // by parameter
  std::vector<T> values_;
};

}  // namespace kzero::detail
