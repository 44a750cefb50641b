// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "network.hpp"

#include <algorithm>
#include <numbers>
#include <string>
#include <type_traits>
#include <utility>

#include "initial_values.hpp"

namespace digits {
namespace {

/// The type in which gradients of parameters of type T are added up.
template <class T>
using Gradient = std::conditional_t<std::is_same_v<T, kzero::float16>,
                                    kzero::float16, float>;

}  // namespace

Network::Network(kzero::ParameterSet& model, NetworkOptions options)
    : options_(std::move(options)) {
  int inputs = pixel_count;
  const auto add = [&](int outputs, Activation activation) {
    const std::string name = "layers/" + std::to_string(layers_.size());
    kzero::ParameterOptions settings;
    settings.dtype = options_.dtype;
    if (settings.dtype == kzero::DType::float16) {
      settings.gradient_dtype = kzero::DType::float16;
    }
    Layer layer;
    layer.weight = model.add(name + "/weight", {outputs, inputs}, settings);
    settings.group = "bias";
    layer.bias = model.add(name + "/bias", {outputs}, settings);
    layer.inputs = inputs;
    layer.outputs = outputs;
    layer.activation = activation;
    layers_.push_back(layer);
    inputs = outputs;
  };
  for (const int width : options_.hidden) add(width, options_.activation);
  add(class_count, Activation::none);
}

void Network::initialise(kzero::ParameterWriter& writer,
                         std::uint64_t seed) const {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const bool relu = layer.activation == Activation::relu;
    const std::vector<float> weights =
        initial_weights(seed, static_cast<int>(l), layer.outputs, layer.inputs,
                        relu ? std::numbers::sqrt2 : 1.0);
    writer.visit(layer.weight, [&](const auto& view) {
      using T = typename std::decay_t<decltype(view)>::non_const_value_type;
      const auto host = Kokkos::create_mirror_view(view);
      std::transform(weights.begin(), weights.end(), host.data(),
                     [](float weight) { return static_cast<T>(weight); });
      Kokkos::deep_copy(view, host);
    });
  }
}

double Network::add_gradients(kzero::ShardedOptimizer& optimizer,
                              const DeviceDigits& digits,
                              const DeviceIndices& indices, float scale,
                              const Space& space) {
  const int count = static_cast<int>(indices.extent(0));
  if (count == 0) return 0.0;
  reserve(count);
  double loss = 0.0;
  with_type([&]<class T>(T) {
    forward<T>(optimizer, digits, indices, space);
    loss = softmax_cross_entropy(space, count, values_.back(), digits, indices,
                                 scale, deltas_.back());
    backward<T>(optimizer, count, space);
  });
  return loss;
}

std::int64_t Network::count_correct(kzero::ShardedOptimizer& optimizer,
                                    const DeviceDigits& digits,
                                    const DeviceIndices& indices,
                                    const Space& space) {
  const int count = static_cast<int>(indices.extent(0));
  if (count == 0) return 0;
  reserve(count);
  with_type([&]<class T>(T) { forward<T>(optimizer, digits, indices, space); });
  return count_highest(space, count, values_.back(), digits, indices);
}

void Network::reserve(int count) {
  if (!values_.empty() && rows(values_[0]) >= count) return;
  const auto matrix = [&](const std::string& label, int width) {
    return Matrix(label, static_cast<std::size_t>(count),
                  static_cast<std::size_t>(width));
  };
  values_.assign(1, matrix("digits::input", pixel_count));
  deltas_.clear();
  for (const Layer& layer : layers_) {
    values_.push_back(matrix("digits::values", layer.outputs));
    deltas_.push_back(matrix("digits::deltas", layer.outputs));
  }
}

template <class T>
void Network::forward(kzero::ShardedOptimizer& optimizer,
                      const DeviceDigits& digits, const DeviceIndices& indices,
                      const Space& space) {
  const int count = static_cast<int>(indices.extent(0));
  take_images(space, digits, indices, count, values_[0]);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    forward_layer<T>(space, count, values_[l],
                     optimizer.parameter<const T**>(layers_[l].weight, space),
                     optimizer.parameter<const T*>(layers_[l].bias, space),
                     layers_[l].activation, values_[l + 1]);
  }
}

template <class T>
void Network::backward(kzero::ShardedOptimizer& optimizer, int count,
                       const Space& space) {
  for (std::size_t l = layers_.size(); l-- > 0;) {
    using G = Gradient<T>;
    add_layer_gradients<G>(space, count, values_[l], deltas_[l],
                           optimizer.gradient<G**>(layers_[l].weight, space),
                           optimizer.gradient<G*>(layers_[l].bias, space));
    if (l == 0) break;  // nobody asks for the derivative by the images
    backward_layer<T>(space, count, values_[l],
                      optimizer.parameter<const T**>(layers_[l].weight, space),
                      deltas_[l], layers_[l - 1].activation, deltas_[l - 1]);
  }
}

}  // namespace digits
