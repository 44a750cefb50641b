// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Numbers and texts as bytes, to be broadcast between ranks of one job: 8 bytes
// a number, texts and lists behind their length, and of what can be copied byte
// by byte its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <kzero/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kzero::detail {

class WireWriter {
 public:
  void put(std::int64_t value) { put_bytes(&value, sizeof(value)); }
  void put(double value) { put_bytes(&value, sizeof(value)); }
  void put(std::string_view text) {
    put(static_cast<std::int64_t>(text.size()));
    put_bytes(text.data(), text.size());
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::int64_t>(values.size()));
    if constexpr (std::is_trivially_copyable_v<T>) {
      put_bytes(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) put(value);
    }
  }

  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  void put_bytes(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

/// Takes in the same order what a WireWriter has put. Throws CommunicationError
/// when the bytes end early.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  void take(std::int64_t& value) { take_bytes(&value, sizeof(value)); }
  void take(double& value) { take_bytes(&value, sizeof(value)); }
  void take(std::string& text) {
    text.resize(take_length(1));
    take_bytes(text.data(), text.size());
  }
  template <class T>
  void take(std::vector<T>& values) {
    constexpr bool flat = std::is_trivially_copyable_v<T>;
    values.resize(take_length(flat ? sizeof(T) : sizeof(std::int64_t)));
    if constexpr (flat) {
      take_bytes(values.data(), values.size() * sizeof(T));
    } else {
      for (T& value : values) take(value);
    }
  }

 private:
  /// A count of things that take at least this many bytes each.
  std::size_t take_length(std::size_t smallest) {
    std::int64_t length = 0;
    take(length);
    if (length < 0 ||
        static_cast<std::size_t>(length) > bytes_.size() / smallest)
      throw_short();
    return static_cast<std::size_t>(length);
  }
  void take_bytes(void* data, std::size_t size) {
    if (size > bytes_.size()) throw_short();
    if (size > 0) std::memcpy(data, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  [[noreturn]] static void throw_short() {
    throw CommunicationError("a broadcast of checkpoint data is incomplete");
  }
  std::span<const std::byte> bytes_;
};

}  // namespace kzero::detail
