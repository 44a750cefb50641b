// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "core/streams.hpp"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace kzero::detail {

#ifdef __SSE2__

namespace {

constexpr std::int64_t line = 64;
constexpr std::int64_t vector_bytes = 16;

/// Calls edge(first, count) for what is no whole line, and lines(first, end).
template <class Edge, class Lines>
void split(const std::byte* to, std::int64_t bytes, Edge&& edge,
           Lines&& lines) {
  const auto past =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % line);
  const std::int64_t head = std::min(bytes, (line - past) % line);
  const std::int64_t end = head + (bytes - head) / line * line;
  if (head > 0) edge(std::int64_t{0}, head);
  lines(head, end);
  if (end < bytes) edge(end, bytes - end);
  _mm_sfence();
}

}  // namespace

void stream_zeros(std::byte* to, std::int64_t bytes) {
  split(
      to, bytes,
      [=](std::int64_t first, std::int64_t count) {
        std::memset(to + first, 0, static_cast<std::size_t>(count));
      },
      [=](std::int64_t first, std::int64_t end) {
        const __m128i zero = _mm_setzero_si128();
        for (std::int64_t i = first; i < end; i += vector_bytes)
          _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), zero);
      });
}

void stream_copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  split(
      to, bytes,
      [=](std::int64_t first, std::int64_t count) {
        std::memcpy(to + first, from + first, static_cast<std::size_t>(count));
      },
      [=](std::int64_t first, std::int64_t end) {
        // The hardware reads ahead up to the end of a page, which is small
        // where memory is shared.
        constexpr std::int64_t ahead = 1024;
        for (std::int64_t i = first; i < end; i += line) {
          _mm_prefetch(reinterpret_cast<const char*>(from + i + ahead),
                       _MM_HINT_T0);
          for (std::int64_t part = 0; part < line; part += vector_bytes) {
            const __m128i value = _mm_loadu_si128(
                reinterpret_cast<const __m128i*>(from + i + part));
            _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + part), value);
          }
        }
      });
}

#else

void stream_zeros(std::byte* to, std::int64_t bytes) {
  std::memset(to, 0, static_cast<std::size_t>(bytes));
}

void stream_copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

#endif

}  // namespace kzero::detail
