// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A multi-layer perceptron whose parameters and gradients live in a
// kzero::ShardedOptimizer.
#pragma once

#include <cstdint>
#include <kzero/kzero.hpp>
#include <vector>

#include "data.hpp"
#include "layers.hpp"

namespace digits {

struct NetworkOptions {
  std::vector<int> hidden = {128};  // widths of the hidden layers
  Activation activation = Activation::relu;
  kzero::DType dtype = kzero::DType::float32;  // of the parameters; not float64
};

class Network {
 public:
  /// Declares the parameters, in the order of the forward pass:
  /// layers/0/weight, layers/0/bias, ... The biases form the group "bias".
  /// Gradients are float32, of float16 parameters float16 too.
  Network(kzero::ParameterSet& model, NetworkOptions options);

  /// For kzero::ShardedOptimizer::write_parameters.
  void initialise(kzero::ParameterWriter& writer, std::uint64_t seed) const;

  /// Forward and backward pass over the images of these numbers. Adds to the
  /// optimizer's gradients scale times the gradient of the loss summed over
  /// the images, and returns that sum (unscaled). Local; no images are fine.
  double add_gradients(kzero::ShardedOptimizer& optimizer,
                       const DeviceDigits& digits, const DeviceIndices& indices,
                       float scale, const Space& space);

  /// How many of the images are classified rightly. Local.
  std::int64_t count_correct(kzero::ShardedOptimizer& optimizer,
                             const DeviceDigits& digits,
                             const DeviceIndices& indices, const Space& space);

 private:
  struct Layer {
    kzero::ParameterId weight;
    kzero::ParameterId bias;
    int inputs = 0;
    int outputs = 0;
    Activation activation = Activation::none;
  };

  void reserve(int count);
  template <class T>
  void forward(kzero::ShardedOptimizer& optimizer, const DeviceDigits& digits,
               const DeviceIndices& indices, const Space& space);
  template <class T>
  void backward(kzero::ShardedOptimizer& optimizer, int count,
                const Space& space);

  /// Calls f with a number of the parameters' type.
  template <class F>
  void with_type(F&& f) const {
    if (options_.dtype == kzero::DType::bfloat16) {
      f(kzero::bfloat16());
    } else if (options_.dtype == kzero::DType::float16) {
      f(kzero::float16());
    } else {
      f(float());
    }
  }

  NetworkOptions options_;
  std::vector<Layer> layers_;
  std::vector<Matrix> values_;  // [0]: the images; [l + 1]: of layer l
  std::vector<Matrix> deltas_;  // [l]: loss's derivative at layer l
};

}  // namespace digits
