// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/tensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <kzero/error.hpp>
#include <set>
#include <type_traits>

#include "core/message.hpp"
#include "io/element_count.hpp"

namespace kzero::tools {

namespace {

constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;

/// The float next to value towards zero, with its last bit set where they
/// differ: rounded to fewer digits it gives what value itself would give.
float rounded_to_odd(double value) {
  auto result = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(result) == value) return result;
  if (std::abs(static_cast<double>(result)) > std::abs(value))
    result = std::nextafter(result, 0.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(result) | 1U);
}

template <class To, class From>
To rounded(From value) {
  if constexpr (std::is_same_v<To, double> || std::is_same_v<To, float>)
    return static_cast<To>(
        static_cast<
            std::conditional_t<std::is_same_v<From, double>, double, float>>(
            value));
  else if constexpr (std::is_same_v<From, double>)
    return static_cast<To>(rounded_to_odd(value));
  else
    return static_cast<To>(static_cast<float>(value));
}

/// Of the NaN that bfloat16 has become by being widened, the same one.
template <>
bfloat16 rounded<bfloat16, float>(float value) {
  bfloat16 result(value);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value) && (bits & 0xffffU) == 0)
    result.bits = static_cast<std::uint16_t>(bits >> 16);
  return result;
}

/// Elements of type From as such of type To.
template <class From, class To>
class Converting final : public ByteStream {
 public:
  explicit Converting(std::unique_ptr<ByteStream> from)
      : from_(std::move(from)) {}

  void read(std::span<std::byte> bytes) override {
    const std::size_t count = bytes.size() / sizeof(To);
    buffer_.resize(count);
    from_->read(std::as_writable_bytes(std::span(buffer_)));
    for (std::size_t i = 0; i < count; ++i) {
      const To element = rounded<To>(buffer_[i]);
      std::memcpy(bytes.data() + i * sizeof(To), &element, sizeof(To));
    }
  }

 private:
  std::unique_ptr<ByteStream> from_;
  std::vector<From> buffer_;
};

}  // namespace

TensorType type_of(DType dtype) {
  return static_cast<TensorType>(static_cast<int>(dtype));
}

std::optional<DType> parameter_dtype(TensorType type) {
  if (type == TensorType::int64) return std::nullopt;
  return static_cast<DType>(static_cast<int>(type));
}

std::int64_t size_of(TensorType type) {
  const auto dtype = parameter_dtype(type);
  return dtype ? kzero::size_of(*dtype) : 8;
}

std::string_view to_string(TensorType type) {
  const auto dtype = parameter_dtype(type);
  return dtype ? kzero::to_string(*dtype) : "int64";
}

TensorType type_named(std::string_view name) {
  for (const TensorType type :
       {TensorType::float16, TensorType::bfloat16, TensorType::float32,
        TensorType::float64, TensorType::int64})
    if (to_string(type) == name) return type;
  throw InvalidArgument(
      detail::concat("unknown number type ", detail::quoted(name)));
}

std::int64_t Tensor::bytes() const {
  return detail::element_count(extents) * size_of(type);
}

Tensor converted(Tensor tensor, TensorType type) {
  if (tensor.type == type) return tensor;
  const auto from = parameter_dtype(tensor.type);
  const auto to = parameter_dtype(type);
  if (!from || !to)
    throw InvalidArgument("integers are not converted to other types");
  tensor.open = [open = std::move(tensor.open), from = *from, to = *to] {
    return visit_dtype(from, [&]<class From>(std::type_identity<From>) {
      return visit_dtype(
          to,
          [&]<class To>(std::type_identity<To>) -> std::unique_ptr<ByteStream> {
            return std::make_unique<Converting<From, To>>(open());
          });
    });
  };
  tensor.type = type;
  return tensor;
}

void for_each_piece(
    const Tensor& tensor,
    const std::function<void(std::int64_t, std::span<const std::byte>)>& f) {
  const std::int64_t bytes = tensor.bytes();
  if (bytes == 0) return;
  const std::unique_ptr<ByteStream> stream = tensor.open();
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::min(piece_bytes, bytes)));
  for (std::int64_t done = 0; done < bytes; done += piece_bytes) {
    const auto part = std::span(buffer).first(
        static_cast<std::size_t>(std::min(piece_bytes, bytes - done)));
    stream->read(part);
    f(done, part);
  }
}

NumberStream::NumberStream(const Tensor& tensor)
    : type_(tensor.type), count_(detail::element_count(tensor.extents)) {
  if (count_ == 0) return;
  // Integers are converted here.
  stream_ = parameter_dtype(type_)
                ? converted(tensor, TensorType::float64).open()
                : tensor.open();
}

std::span<const double> NumberStream::next() {
  constexpr std::int64_t most =
      piece_bytes / static_cast<std::int64_t>(sizeof(double));
  numbers_.resize(static_cast<std::size_t>(std::min(most, count_ - done_)));
  done_ += std::ssize(numbers_);
  const auto bytes = std::as_writable_bytes(std::span(numbers_));
  if (!bytes.empty()) stream_->read(bytes);
  if (type_ == TensorType::int64)
    for (double& each : numbers_)
      each = static_cast<double>(std::bit_cast<std::int64_t>(each));
  return numbers_;
}

void require_names_once(const std::vector<Tensor>& tensors) {
  std::set<std::string_view> names;
  for (const Tensor& tensor : tensors)
    if (!names.insert(tensor.name).second)
      throw CheckpointError(detail::concat("two arrays would have the name ",
                                           detail::quoted(tensor.name)));
}

}  // namespace kzero::tools
