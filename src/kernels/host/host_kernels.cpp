// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Compiled once for each instruction set, with KZERO_INSTRUCTION_SET its name.
// Everything but the table has internal linkage or is always inlined: nothing
// compiled here for a wide instruction set may be linked into other code.
#include "kernels/host/host_kernels.hpp"

#include "kernels/arithmetic.hpp"
#include "kernels/host/sum_tile.hpp"
#include "kernels/host/update_tile.hpp"
#include "kernels/host/word_sum.hpp"
#include "kernels/kernels.hpp"

namespace kzero::detail {
namespace {

template <class Step, class T, class Parameter>
void update(const UpdateTile& tile) {
  update_tile<Step::state_arrays, T, Parameter>(
      *static_cast<const Step*>(tile.step), tile);
}

template <class T, class Parameter>
void update_lamb(const UpdateTile& tile) {
  const auto& step = *static_cast<const LambStep<T>*>(tile.step);
  const T size = static_cast<T>(step.learning_rate * tile.trust_ratio);
  update_tile<LambStep<T>::state_arrays, T, Parameter>(LambMove<T>{step, size},
                                                       tile);
}

template <class T>
void trust(const UpdateTile& tile, TrustSums& sums) {
  Block<double> of_parameter;
  Block<double> of_update;
  alignas(64) T directions[chunk_size];
  const LambStep<T> step = *static_cast<const LambStep<T>*>(tile.step);
  const T factor = static_cast<T>(tile.gradient_factor);
  for (std::int64_t begin = 0; begin < tile.count; begin += chunk_size) {
    const std::int64_t left = tile.count - begin;
    const std::int64_t count = left < chunk_size ? left : chunk_size;
    const T* __restrict gradient = static_cast<const T*>(tile.gradient) + begin;
    const T* __restrict main = static_cast<const T*>(tile.main) + begin;
    T* __restrict state0 = static_cast<T*>(tile.state[0]) + begin;
    T* __restrict state1 = static_cast<T*>(tile.state[1]) + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      T s[2] = {state0[i], state1[i]};
      step.moments(gradient[i] * factor, s);
      state0[i] = s[0];
      state1[i] = s[1];
      directions[i] = step.direction(main[i], s);
    }
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto some = static_cast<int>(count - i < lanes ? count - i : lanes);
      add_squares(load(main + i, some), of_parameter);
      add_squares(load(directions + i, some), of_update);
    }
  }
  sums.parameter += add_lanes(of_parameter);
  sums.update += add_lanes(of_update);
}

template <class In, class Out>
KZERO_FUNCTION void convert(const In* __restrict in, Out* __restrict out,
                            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(in[i]);
}

template <class In>
void widen(const void* source, float* out, std::int64_t count) {
  convert(static_cast<const In*>(source), out, count);
}

template <class Out>
void narrow(const float* source, void* out, std::int64_t count) {
  Out* const to = static_cast<Out*>(out);
  std::int64_t done = 0;
  if constexpr (has_narrow_blocks<Out>) {
    done = count / lanes * lanes;
    narrow_blocks(source, to, done);
  }
  convert(source + done, to + done, count - done);
}

// By the codes of 16-bit types, so that a conversion need not be made.
template <template <class> class Step>
constexpr std::array<UpdateFunction, 4> update_row = {
    update<Step<float>, float, float16>, update<Step<float>, float, bfloat16>,
    update<Step<float>, float, float>, update<Step<double>, double, double>};

}  // namespace

// NOLINTNEXTLINE(misc-definitions-in-headers)
constinit const HostKernels KZERO_HOST_KERNELS = {
    KZERO_INSTRUCTION_SET_NAME,
    {{{sum<float16, float>, sum<float16, double>},
      {sum<bfloat16, float>, sum<bfloat16, double>},
      {sum<float, float>, sum<float, double>},
      {sum<double, float>, sum<double, double>}}},
    {update_row<AdamWStep>,
     update_row<AmsgradStep>,
     update_row<SgdStep>,
     update_row<MomentumStep>,
     update_row<AdamStep>,
     update_row<AdamAmsgradStep>,
     update_row<AdagradStep>,
     update_row<RmsPropPlainStep>,
     update_row<RmsPropMomentumStep>,
     update_row<RmsPropCenteredStep>,
     update_row<RmsPropCenteredMomentumStep>,
     update_row<LionStep>,
     {update_lamb<float, float16>, update_lamb<float, bfloat16>,
      update_lamb<float, float>, update_lamb<double, double>}},
    {trust<float>, trust<float>, trust<float>, trust<double>},
    {widen<float16>, widen<bfloat16>},
    {narrow<float16>, narrow<bfloat16>},
    sum_words};

}  // namespace kzero::detail
