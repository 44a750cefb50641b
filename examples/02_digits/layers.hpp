// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The kernels of the network, one launch each, ordered on the instance that is
// given. Matrices hold one image a row; weights are outputs x inputs. Weights
// of any type are computed with in float. Every element is summed by one
// thread in one order, so results have the same bits with any threads.
#pragma once

#include <math.h>  // tanhf, expf, logf: on host and device with every Kokkos

#include <Kokkos_Core.hpp>
#include <kzero/parameter_view.hpp>

#include "data.hpp"

namespace digits {

using Space = kzero::ExecutionSpace;
using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Space>;
using Rows = Kokkos::RangePolicy<Space, Kokkos::IndexType<int>>;
using Grid =
    Kokkos::MDRangePolicy<Space, Kokkos::Rank<2>, Kokkos::IndexType<int>>;

/// All rows and columns of a matrix.
template <class View>
int rows(const View& view) {
  return static_cast<int>(view.extent(0));
}
template <class View>
int columns(const View& view) {
  return static_cast<int>(view.extent(1));
}

enum class Activation { none, tanh, relu };

KOKKOS_INLINE_FUNCTION float activate(Activation activation, float x) {
  if (activation == Activation::tanh) return ::tanhf(x);
  if (activation == Activation::relu) return x > 0.0f ? x : 0.0f;
  return x;
}

/// The derivative, from the function's value.
KOKKOS_INLINE_FUNCTION float slope(Activation activation, float y) {
  if (activation == Activation::tanh) return 1.0f - y * y;
  if (activation == Activation::relu) return y > 0.0f ? 1.0f : 0.0f;
  return 1.0f;
}

/// out(n, :) = the image of number indices(n), for the first count of them.
inline void take_images(const Space& space, const DeviceDigits& digits,
                        const DeviceIndices& indices, int count,
                        const Matrix& out) {
  const auto images = digits.images;
  Kokkos::parallel_for(
      "digits::take_images", Grid(space, {0, 0}, {count, columns(out)}),
      KOKKOS_LAMBDA(int n, int i) { out(n, i) = images(indices(n), i); });
}

/// out = activation(in * weight' + bias)
template <class T>
void forward_layer(const Space& space, int count, const Matrix& in,
                   const kzero::ParameterView<const T**>& weight,
                   const kzero::ParameterView<const T*>& bias,
                   Activation activation, const Matrix& out) {
  const int inputs = columns(weight);
  Kokkos::parallel_for(
      "digits::forward", Grid(space, {0, 0}, {count, rows(weight)}),
      KOKKOS_LAMBDA(int n, int o) {
        float sum = static_cast<float>(bias(o));
        for (int i = 0; i < inputs; ++i) {
          sum += in(n, i) * static_cast<float>(weight(o, i));
        }
        out(n, o) = activate(activation, sum);
      });
}

/// Adds delta' * in to the weight's gradient, and delta's sum over the images
/// to the bias's. G: the type of the gradients.
template <class G>
void add_layer_gradients(const Space& space, int count, const Matrix& in,
                         const Matrix& delta,
                         const kzero::ParameterView<G**>& weight_gradient,
                         const kzero::ParameterView<G*>& bias_gradient) {
  Kokkos::parallel_for(
      "digits::weight_gradient",
      Grid(space, {0, 0}, {rows(weight_gradient), columns(weight_gradient)}),
      KOKKOS_LAMBDA(int o, int i) {
        float sum = 0.0f;
        for (int n = 0; n < count; ++n) sum += delta(n, o) * in(n, i);
        weight_gradient(o, i) =
            G(static_cast<float>(weight_gradient(o, i)) + sum);
      });
  Kokkos::parallel_for(
      "digits::bias_gradient", Rows(space, 0, rows(bias_gradient)),
      KOKKOS_LAMBDA(int o) {
        float sum = 0.0f;
        for (int n = 0; n < count; ++n) sum += delta(n, o);
        bias_gradient(o) = G(static_cast<float>(bias_gradient(o)) + sum);
      });
}

/// The loss's derivative by the layer's input before its activation, from that
/// by its output: below = (delta * weight) .* slope(in)
template <class T>
void backward_layer(const Space& space, int count, const Matrix& in,
                    const kzero::ParameterView<const T**>& weight,
                    const Matrix& delta, Activation activation,
                    const Matrix& below) {
  const int outputs = rows(weight);
  Kokkos::parallel_for(
      "digits::backward", Grid(space, {0, 0}, {count, columns(weight)}),
      KOKKOS_LAMBDA(int n, int i) {
        float sum = 0.0f;
        for (int o = 0; o < outputs; ++o) {
          sum += delta(n, o) * static_cast<float>(weight(o, i));
        }
        below(n, i) = sum * slope(activation, in(n, i));
      });
}

/// The softmax cross-entropy summed over the images, and its derivative by the
/// scores, times scale. Waits for the result.
inline double softmax_cross_entropy(const Space& space, int count,
                                    const Matrix& scores,
                                    const DeviceDigits& digits,
                                    const DeviceIndices& indices, float scale,
                                    const Matrix& delta) {
  const auto labels = digits.labels;
  const int classes = columns(scores);
  double loss = 0.0;
  Kokkos::parallel_reduce(
      "digits::cross_entropy", Rows(space, 0, count),
      KOKKOS_LAMBDA(int n, double& total) {
        // The largest score is taken off first: no exponential overflows.
        float largest = scores(n, 0);
        for (int k = 1; k < classes; ++k) {
          if (scores(n, k) > largest) largest = scores(n, k);
        }
        float sum = 0.0f;
        for (int k = 0; k < classes; ++k) {
          delta(n, k) = ::expf(scores(n, k) - largest);
          sum += delta(n, k);
        }
        const int label = labels(indices(n));
        for (int k = 0; k < classes; ++k) {
          const float target = k == label ? 1.0f : 0.0f;
          delta(n, k) = scale * (delta(n, k) / sum - target);
        }
        const float score = scores(n, label) - largest;
        total += static_cast<double>(::logf(sum) - score);
      },
      loss);
  return loss;
}

/// How many images have their highest score at their label. Waits.
inline int count_highest(const Space& space, int count, const Matrix& scores,
                         const DeviceDigits& digits,
                         const DeviceIndices& indices) {
  const auto labels = digits.labels;
  const int classes = columns(scores);
  int correct = 0;
  Kokkos::parallel_reduce(
      "digits::count_highest", Rows(space, 0, count),
      KOKKOS_LAMBDA(int n, int& total) {
        int best = 0;
        for (int k = 1; k < classes; ++k) {
          if (scores(n, k) > scores(n, best)) best = k;
        }
        total += best == labels(indices(n)) ? 1 : 0;
      },
      correct);
  return correct;
}

}  // namespace digits
