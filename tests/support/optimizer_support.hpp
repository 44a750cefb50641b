// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Short ways to fill and read an optimizer's parameters in tests.
#pragma once

#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <kzero/kzero.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/message.hpp"

namespace kzero::test {

inline std::shared_ptr<Communicator> world(
    Backend backend = Backend::automatic) {
  CommunicatorOptions options;
  options.backend = backend;
  options.timeout = std::chrono::seconds(30);
  return make_communicator(MPI_COMM_WORLD, options);
}

template <class T>
using FlatView = ParameterView<T*>;

/// Calls f(i) for each element and writes what it returns, in the view's type.
template <class View, class F>
void fill_view(const View& view, F&& f) {
  using Value = typename View::non_const_value_type;
  auto host = Kokkos::create_mirror_view(view);
  for (std::int64_t i = 0; i < std::int64_t(view.extent(0)); ++i)
    host(i) = Value(
        static_cast<std::conditional_t<sizeof(Value) == 8, double, float>>(
            f(i)));
  Kokkos::deep_copy(view, host);
}

template <class F>
void fill_gradient(ShardedOptimizer& optimizer, ParameterId id, F&& f) {
  if (optimizer.parameters()[id].frozen) return;
  visit_dtype(optimizer.parameters()[id].gradient_dtype,
              [&]<class T>(std::type_identity<T>) {
                fill_view(optimizer.gradient<T*>(id), f);
              });
}

/// Writes f(i) into the parameter on every rank, main parameter included.
template <class F>
void write_parameter(ShardedOptimizer& optimizer, ParameterId id, F&& f) {
  optimizer.write_parameters(0, [&](ParameterWriter& writer) {
    writer.visit(id, [&](const auto& view) { fill_view(view, f); });
  });
}

inline std::vector<double> read_parameter(ShardedOptimizer& optimizer,
                                          ParameterId id) {
  std::vector<double> values;
  visit_dtype(optimizer.parameters()[id].dtype,
              [&]<class T>(std::type_identity<T>) {
                const auto host = Kokkos::create_mirror_view_and_copy(
                    Kokkos::HostSpace(), optimizer.parameter<const T*>(id));
                for (std::int64_t i = 0; i < std::int64_t(host.extent(0)); ++i)
                  values.push_back(static_cast<double>(host(i)));
              });
  return values;
}

/// All parameters, one after another.
inline std::vector<double> read_all(ShardedOptimizer& optimizer) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < optimizer.parameters().size(); ++i) {
    const auto more = read_parameter(optimizer, ParameterId{i});
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

inline ParameterOptions typed(DType dtype) {
  ParameterOptions options;
  options.dtype = dtype;
  return options;
}

/// The message of the exception of type E that f throws; fails without one.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace kzero::test
