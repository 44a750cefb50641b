// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Loss scaling: the caller multiplies the loss by
// ShardedOptimizer::loss_scale() so that 16-bit gradients neither vanish nor
// overflow; step() divides the gradients by it.
#pragma once

#include <cstdint>

namespace kzero {

/// After a step with a NaN or an infinity in the gradients:
///   good = 0;  hysteresis_left -= 1
///   if hysteresis_left <= 0: scale = max(scale*backoff, minimum)
/// after any other:
///   good += 1;  if good == growth_interval: good = 0,
///   hysteresis_left = hysteresis, scale *= growth
/// The scale stays a normal float32 number. It is divided out before it
/// changes.
struct DynamicScaler {
  double initial_scale = 65536.0;
  double growth = 2.0;
  double backoff = 0.5;
  std::int64_t growth_interval = 2000;
  std::int64_t hysteresis = 1;
  double minimum = 0.0;
  friend bool operator==(const DynamicScaler&, const DynamicScaler&) = default;

  /// The defaults of PyTorch's GradScaler (the defaults here).
  static DynamicScaler torch() { return {}; }
  /// The defaults of Megatron-LM's DynamicGradScaler.
  static DynamicScaler megatron() {
    return {4294967296.0, 2.0, 0.5, 1000, 2, 1.0};
  }
};

class Scaler {
 public:
  enum class Kind { none, constant, dynamic };

  /// A scale of 1. The default.
  static const Scaler none;
  /// A scale that never changes. Throws InvalidArgument unless it is a normal
  /// float32 number above 0.
  static Scaler constant(double scale);
  /// Throws InvalidArgument for a growth not above 1, a backoff outside (0, 1),
  /// an interval or a hysteresis below 1, an initial scale that is no normal
  /// float32 number above 0, and a minimum below 0 or above it.
  static Scaler dynamic(const DynamicScaler& scaling = {});

  Scaler() = default;
  /// dynamic(scaling).
  Scaler(const DynamicScaler& scaling) : Scaler(dynamic(scaling)) {}
  Kind kind() const { return kind_; }
  /// Of kind dynamic; of kind constant only the initial scale is used.
  const DynamicScaler& scaling() const { return scaling_; }
  friend bool operator==(const Scaler&, const Scaler&) = default;

 private:
  constexpr Scaler(Kind kind, const DynamicScaler& scaling)
      : kind_(kind), scaling_(scaling) {}
  Kind kind_ = Kind::none;
  DynamicScaler scaling_ = {.initial_scale = 1.0};
};

inline constexpr Scaler Scaler::none{Kind::none, {.initial_scale = 1.0}};

}  // namespace kzero
