// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The oracle of the digits example: the same training on one processor in
// float64, written from the equations alone. It shares no code with the
// library and none with the example's network.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace serial {

using Vector = std::vector<double>;

/// An array that AdamW trains.
struct Parameter {
  Vector value, gradient, m, v;
  double weight_decay = 0.0;

  Parameter(Vector start, double decay)
      : value(std::move(start)),
        gradient(value.size()),
        m(value.size()),
        v(value.size()),
        weight_decay(decay) {}
};

struct Layer {
  std::size_t inputs, outputs;
  Parameter weight;  // outputs x inputs
  Parameter bias;
};

enum class Kind { tanh, relu };

struct Settings {
  Kind kind = Kind::tanh;
  double learning_rate = 0.0;
  double clip = 0.0;  // 0: none
};

class Training {
 public:
  explicit Training(Settings settings) : settings_(settings) {}

  void add_layer(std::size_t inputs, std::size_t outputs, Vector weights,
                 double weight_decay) {
    layers_.push_back({inputs,
                       outputs,
                       {std::move(weights), weight_decay},
                       {Vector(outputs, 0.0), 0.0}});
  }

  /// One update by the mean gradient over the images (of 64 pixels, 0..16) of
  /// these numbers. Returns the mean loss before it.
  double step(const std::vector<std::uint8_t>& images,
              const std::vector<std::uint8_t>& labels,
              const std::vector<int>& batch) {
    for (Layer& layer : layers_) {
      layer.weight.gradient.assign(layer.weight.gradient.size(), 0.0);
      layer.bias.gradient.assign(layer.bias.gradient.size(), 0.0);
    }
    double loss = 0.0;
    for (const int number : batch) {
      const auto n = static_cast<std::size_t>(number);
      Vector image(64);
      for (std::size_t i = 0; i < 64; ++i) image[i] = images[64 * n + i] / 16.0;
      loss += add_image(image, labels[n]);
    }
    const auto count = static_cast<double>(batch.size());
    update(1.0 / count);
    return loss / count;
  }

 private:
  /// Forward and backward pass over one image; its loss.
  double add_image(const Vector& image, std::size_t label) {
    std::vector<Vector> y = {image};
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      Vector z = layer.bias.value;
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        for (std::size_t i = 0; i < layer.inputs; ++i) {
          z[o] += layer.weight.value[o * layer.inputs + i] * y[l][i];
        }
        if (l + 1 == layers_.size()) continue;
        z[o] = settings_.kind == Kind::tanh ? std::tanh(z[o])
                                            : std::fmax(z[o], 0.0);
      }
      y.push_back(z);
    }

    // p = exp(z) / sum exp(z), loss = -log p[label], dloss/dz = p - [label].
    Vector d = y.back();
    double sum = 0.0;
    for (const double z : d) sum += std::exp(z);
    const double loss = std::log(sum) - d[label];
    for (double& z : d) z = std::exp(z) / sum;
    d[label] -= 1.0;

    for (std::size_t l = layers_.size(); l-- > 0;) {
      Layer& layer = layers_[l];
      Vector below(layer.inputs, 0.0);
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        layer.bias.gradient[o] += d[o];
        for (std::size_t i = 0; i < layer.inputs; ++i) {
          layer.weight.gradient[o * layer.inputs + i] += d[o] * y[l][i];
          below[i] += d[o] * layer.weight.value[o * layer.inputs + i];
        }
      }
      for (std::size_t i = 0; i < layer.inputs; ++i) {
        below[i] *= settings_.kind == Kind::tanh ? 1.0 - y[l][i] * y[l][i]
                    : y[l][i] > 0.0              ? 1.0
                                                 : 0.0;
      }
      d = below;
    }
    return loss;
  }

  /// AdamW (Loshchilov and Hutter, 2019) with beta 0.9 and 0.999 and epsilon
  /// 1e-8, on the gradients times scale, clipped by their global norm.
  void update(double scale) {
    double squares = 0.0;
    for_each_parameter([&](Parameter& p) {
      for (double& g : p.gradient) {
        g *= scale;
        squares += g * g;
      }
    });
    double clip = 1.0;
    if (settings_.clip > 0.0) {
      clip = std::fmin(1.0, settings_.clip / (std::sqrt(squares) + 1e-6));
    }
    ++updates_;
    const double m_part = 1.0 - std::pow(0.9, updates_);
    const double v_part = 1.0 - std::pow(0.999, updates_);
    for_each_parameter([&](Parameter& p) {
      for (std::size_t k = 0; k < p.value.size(); ++k) {
        const double g = clip * p.gradient[k];
        p.m[k] = 0.9 * p.m[k] + 0.1 * g;
        p.v[k] = 0.999 * p.v[k] + 0.001 * g * g;
        p.value[k] -= settings_.learning_rate * p.weight_decay * p.value[k];
        p.value[k] -= settings_.learning_rate * (p.m[k] / m_part) /
                      (std::sqrt(p.v[k] / v_part) + 1e-8);
      }
    });
  }

  template <class F>
  void for_each_parameter(F&& f) {
    for (Layer& layer : layers_) {
      f(layer.weight);
      f(layer.bias);
    }
  }

  Settings settings_;
  std::vector<Layer> layers_;
  int updates_ = 0;
};

}  // namespace serial
