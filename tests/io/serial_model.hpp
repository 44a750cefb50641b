// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A training without ranks: parameters, their state and groups in plain arrays,
// updated by the equations of each rule in the precision of the parameter.
#pragma once

#include <array>
#include <cstdint>
#include <kzero/kzero.hpp>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kzero::test {

/// A rule with two state arrays that small integers go through exactly.
struct Twofold {
  static constexpr std::string_view name = "twofold";
  static constexpr std::array<std::string_view, 2> state = {"first", "second"};
  double learning_rate = 1.0;
  static constexpr Hyperparameter<Twofold> hyperparameters[] = {
      {"learning_rate", &Twofold::learning_rate}};

  template <class T>
  KZERO_FUNCTION void operator()(T g, T& p, T* s) const {
    s[0] = T(0.5) * s[0] + g;
    s[1] = s[1] + s[0];
    p -= T(learning_rate) * s[1];
  }
};

/// With no, one, one and two state arrays.
enum class SerialRule { sgd, momentum, lion, twofold };

inline Rule rule_of(SerialRule rule, double rate) {
  switch (rule) {
    case SerialRule::sgd:
      return Sgd{.learning_rate = rate};
    case SerialRule::momentum:
      return Sgd{.learning_rate = rate, .momentum = 0.5, .dampening = 0.5};
    case SerialRule::lion:
      return Lion{.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.75};
    case SerialRule::twofold:
      break;
  }
  return Twofold{.learning_rate = rate};
}

inline std::vector<std::string> state_names_of(SerialRule rule) {
  switch (rule) {
    case SerialRule::sgd:
      return {};
    case SerialRule::momentum:
      return {"momentum_buffer"};
    case SerialRule::lion:
      return {"exp_avg"};
    case SerialRule::twofold:
      break;
  }
  return {"first", "second"};
}

struct SerialGroup {
  SerialRule rule = SerialRule::sgd;
  double rate = 1.0;
};

struct SerialParameter {
  std::string name;
  std::string group;
  std::int64_t size = 0;
  DType dtype = DType::float32;
  DType gradient_dtype = DType::float32;
  int storage = 0;  // place of the parameter that has the following
  bool keep = false;
  bool frozen = false;
  std::vector<double> main = {};
  std::array<std::vector<double>, 2> state = {};
  std::int64_t updates = 0;

  /// What the parameter itself holds.
  double value(std::size_t i) const {
    return dtype == DType::bfloat16 ? double(float(bfloat16(float(main[i]))))
                                    : main[i];
  }
};

class SerialModel {
 public:
  std::map<std::string, SerialGroup> groups;
  std::vector<SerialParameter> parameters;
  std::int64_t steps = 0;
  std::int64_t skipped_total = 0;
  std::int64_t skipped_in_a_row = 0;

  int size() const { return int(parameters.size()); }
  SerialParameter& operator[](int p) { return parameters[std::size_t(p)]; }
  const SerialParameter& operator[](int p) const {
    return parameters[std::size_t(p)];
  }

  bool is_storage(int p) const { return (*this)[p].storage == p; }
  /// Whether it has a gradient of its own.
  bool is_trained(int p) const { return is_storage(p) && !(*this)[p].frozen; }

  /// The mean of gradients: in the precision of what is sent, then in that of
  /// the parameter.
  double average(int p, double sum, double divisor) const {
    const SerialParameter& of = (*this)[p];
    if (of.gradient_dtype != DType::float64)
      return double(float(sum) * float(1.0 / divisor));
    const double mean = sum * (1.0 / divisor);
    return of.dtype == DType::float64 ? mean : double(float(mean));
  }

  /// One update with an averaged gradient.
  void update(int p, const std::vector<double>& average) {
    if ((*this)[p].dtype == DType::float64)
      update_as<double>((*this)[p], average);
    else
      update_as<float>((*this)[p], average);
  }

  /// Main parameters lose what 16-bit parameters do not hold.
  void round_main() {
    for (SerialParameter& each : parameters)
      for (std::size_t i = 0; i < each.main.size(); ++i)
        each.main[i] = each.value(i);
  }

  /// What a state of before leaves of this one: all that it does not have.
  void load(const SerialModel& saved) {
    for (std::size_t p = 0; p < saved.parameters.size(); ++p)
      parameters[p] = saved.parameters[p];
    for (const auto& [name, group] : saved.groups) groups.at(name) = group;
    steps = saved.steps;
    skipped_total = saved.skipped_total;
    skipped_in_a_row = saved.skipped_in_a_row;
  }

 private:
  template <class T>
  void update_as(SerialParameter& of, const std::vector<double>& average) {
    const SerialGroup& group = groups.at(of.group);
    const bool first = ++of.updates == 1;
    const T rate = T(group.rate);
    for (std::size_t i = 0; i < of.main.size(); ++i) {
      const T g = T(average[i]);
      T p = T(of.main[i]);
      T s[2] = {T(of.state[0][i]), T(of.state[1][i])};
      switch (group.rule) {
        case SerialRule::sgd:
          p -= rate * g;
          break;
        case SerialRule::momentum:
          s[0] = first ? g : T(0.5) * s[0] + T(0.5) * g;
          p -= rate * s[0];
          break;
        case SerialRule::lion: {
          const T c = T(0.5) * s[0] + T(0.5) * g;
          p -= c > 0 ? rate : c < 0 ? -rate : T(0);
          s[0] = T(0.75) * s[0] + T(0.25) * g;
          break;
        }
        case SerialRule::twofold:
          s[0] = T(0.5) * s[0] + g;
          s[1] += s[0];
          p -= rate * s[1];
          break;
      }
      of.main[i] = double(p);
      of.state[0][i] = double(s[0]);
      of.state[1][i] = double(s[1]);
    }
  }
};

}  // namespace kzero::test
