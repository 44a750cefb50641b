// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Parameters in memory of the test's own, in any order of dimensions and with
// gaps that nobody may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/dtype.hpp>
#include <kzero/external_array.hpp>
#include <kzero/parameter_set.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kzero::test {

/// right: C order. left: Fortran order. gaps: C order, every dimension strided.
enum class Order { right, left, gaps };

class OwnArray {
 public:
  OwnArray(DType dtype, const std::vector<std::int64_t>& extents, Order order) {
    array_.dtype = dtype;
    array_.extents = extents;
    array_.strides.assign(extents.size(), 0);
    std::int64_t step = order == Order::gaps ? 2 : 1;
    for (std::size_t k = 0; k < extents.size(); ++k) {
      const std::size_t d = order == Order::left ? k : extents.size() - 1 - k;
      array_.strides[d] = step;
      step = step * extents[d] + (order == Order::gaps ? 1 : 0);
    }
    room_ = step + 3;
    memory_ = std::shared_ptr<std::byte[]>(
        new std::byte[static_cast<std::size_t>(room_ * size_of(dtype))]);
    array_.data = memory_.get();
    array_.owner = memory_;
    visit([&](auto* data) {
      for (std::int64_t i = 0; i < room_; ++i) data[i] = number(data, gap);
      for (std::int64_t i = 0; i < size(); ++i)
        data[offset(i)] = number(data, 0.0);
    });
  }

  const ExternalArray& array() const { return array_; }
  std::int64_t size() const { return array_.size(); }

  /// Element i in C order of the indices.
  double get(std::int64_t i) const {
    double value = 0.0;
    visit([&](const auto* data) {
      value = static_cast<double>(data[offset(i)]);
    });
    return value;
  }
  void set(std::int64_t i, double value) const {
    visit([&](auto* data) { data[offset(i)] = number(data, value); });
  }

  template <class F>
  void fill(F&& f) const {
    for (std::int64_t i = 0; i < size(); ++i) set(i, f(i));
  }

  std::vector<double> values() const {
    std::vector<double> all;
    for (std::int64_t i = 0; i < size(); ++i) all.push_back(get(i));
    return all;
  }

  /// Whether nothing but the elements was written.
  bool gaps_are_whole() const {
    std::vector<bool> used(static_cast<std::size_t>(room_), false);
    for (std::int64_t i = 0; i < size(); ++i)
      used[static_cast<std::size_t>(offset(i))] = true;
    bool whole = true;
    visit([&](const auto* data) {
      for (std::int64_t i = 0; i < room_; ++i)
        if (!used[static_cast<std::size_t>(i)])
          whole = whole && static_cast<double>(data[i]) == gap;
    });
    return whole;
  }

 private:
  static constexpr double gap = -77.0;

  template <class T>
  static T number(const T*, double value) {
    return T(
        static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(value));
  }

  template <class F>
  void visit(F&& f) const {
    visit_dtype(array_.dtype, [&](auto type) {
      f(static_cast<typename decltype(type)::type*>(array_.data));
    });
  }

  std::int64_t offset(std::int64_t i) const {
    std::int64_t place = 0;
    for (std::size_t d = array_.extents.size(); d-- > 0;) {
      place += i % array_.extents[d] * array_.strides[d];
      i /= array_.extents[d];
    }
    return place;
  }

  std::int64_t room_ = 0;  // elements
  std::shared_ptr<std::byte[]> memory_;
  ExternalArray array_;
};

/// A parameter and its gradient.
struct Own {
  OwnArray value;
  OwnArray gradient;

  Own(const std::vector<std::int64_t>& extents, Order order,
      DType dtype = DType::float32)
      : Own(extents, order, dtype,
            size_of(dtype) == 2 ? DType::float32 : dtype) {}
  Own(const std::vector<std::int64_t>& extents, Order order, DType dtype,
      DType gradient_dtype)
      : value(dtype, extents, order),
        gradient(gradient_dtype, extents, order) {}

  ParameterId add_to(ParameterSet& set, std::string name,
                     ParameterOptions options = {}) const {
    return set.add(std::move(name), value.array(), gradient.array(),
                   std::move(options));
  }

  bool gaps_are_whole() const {
    return value.gaps_are_whole() && gradient.gaps_are_whole();
  }
};

}  // namespace kzero::test
