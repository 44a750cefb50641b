// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Arrays on their way from one kind of file to another: names, types, shapes,
// and where the bytes come from, piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <kzero/dtype.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kzero::tools {

/// The number types of DType, and int64, which the caller's own arrays have.
enum class TensorType : std::uint8_t {
  float16,
  bfloat16,
  float32,
  float64,
  int64
};

TensorType type_of(DType dtype);
/// Nothing for int64.
std::optional<DType> parameter_dtype(TensorType type);
std::int64_t size_of(TensorType type);
std::string_view to_string(TensorType type);
/// Throws InvalidArgument for a name that to_string never gives.
TensorType type_named(std::string_view name);

/// The bytes of one array from the first to the last: C order, little-endian.
class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// The next ones. Throws CheckpointError for what cannot be read, and with
  /// the last ones when they are not those that were written.
  virtual void read(std::span<std::byte> bytes) = 0;
};

struct Tensor {
  std::string name;
  TensorType type = TensorType::float32;
  std::vector<std::int64_t> extents;
  std::function<std::unique_ptr<ByteStream>()> open;

  std::int64_t bytes() const;
};

/// What one file holds, in its order.
struct Tensors {
  std::vector<Tensor> tensors;
  /// The manifest of the checkpoint of which these are all arrays; empty for
  /// tensors alone.
  std::string manifest;
  /// What is not among the tensors, and why.
  std::vector<std::string> passed_over;
};

/// What becomes of tensors of types that no checkpoint has.
enum class OtherTypes { refuse, pass_over };

/// The same elements, rounded to nearest even where type has fewer digits.
/// Throws InvalidArgument for int64.
Tensor converted(Tensor tensor, TensorType type);

/// Calls f(first byte, bytes) for all of a tensor.
void for_each_piece(
    const Tensor& tensor,
    const std::function<void(std::int64_t, std::span<const std::byte>)>& f);

/// All elements of a tensor as numbers, some at a time.
class NumberStream {
 public:
  explicit NumberStream(const Tensor& tensor);
  std::int64_t count() const { return count_; }
  /// The next ones: as many of any tensor with as many elements.
  std::span<const double> next();

 private:
  TensorType type_;
  std::int64_t count_;
  std::int64_t done_ = 0;
  std::unique_ptr<ByteStream> stream_;
  std::vector<double> numbers_;
};

/// Throws CheckpointError for a name that is there twice.
void require_names_once(const std::vector<Tensor>& tensors);

}  // namespace kzero::tools
