// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A state in memory as what arrays go to and come from, with the layout that a
// file of it would have.
#pragma once

#include <kzero/optimizer_state.hpp>
#include <string_view>
#include <unordered_map>

#include "io/array_ends.hpp"
#include "io/file_layout.hpp"

namespace kzero::detail {

/// A state of this layout, of an optimizer with this scaler, with room for all
/// elements. Throws Error when there is no memory. Local.
OptimizerState state_of(const FileLayout& layout, const Scaler& scaler);

/// The layout of a state, value first among the arrays. Throws InvalidArgument
/// for what no optimizer has: an unknown number type, an array of another size
/// than its shape, a name twice, a parameter without a value. Local.
FileLayout layout_of(const OptimizerState& state);

/// Fills a state, which outlives it and has an array for all that is written.
class StateSink final : public ArraySink {
 public:
  explicit StateSink(OptimizerState& state);
  void write(const ParameterLayout& parameter, const ArrayLayout& array,
             const void* data) override;

 private:
  std::unordered_map<std::string_view, ParameterState*> parameters_;
};

/// Reads a state, which outlives it and has a layout.
class StateSource final : public ArraySource {
 public:
  explicit StateSource(const OptimizerState& state);
  void read(const ParameterLayout& parameter, const ArrayLayout& array,
            void* data) const override;
  /// One piece.
  void read_pieces(
      const ParameterLayout& parameter, const ArrayLayout& array,
      const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
      const override;

 private:
  const StateArray& find(const ParameterLayout& parameter,
                         const ArrayLayout& array) const;
  std::unordered_map<std::string_view, const ParameterState*> parameters_;
};

}  // namespace kzero::detail
