// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "storage/strided_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace kzero::detail {
namespace {

constexpr std::size_t maximum_rank = 8;

/// Indices of one dimension, and how far apart they are in memory on the two
/// sides of a copy.
struct Dimension {
  std::int64_t extent = 1;
  std::int64_t from = 1;
  std::int64_t to = 1;
};

/// What is copied at once: all combinations of the indices.
struct Box {
  std::size_t rank = 1;
  std::array<Dimension, maximum_rank> dimensions;

  /// The dimension whose indices lie closest on one side.
  std::size_t fastest(std::int64_t Dimension::*side) const {
    std::size_t best = 0;
    for (std::size_t d = 1; d < rank; ++d)
      if (dimensions[best].extent == 1 ||
          (dimensions[d].extent > 1 &&
           dimensions[d].*side < dimensions[best].*side))
        best = d;
    return best;
  }

  /// Takes it out; what is left are the other dimensions.
  Dimension take(std::size_t d) {
    const Dimension taken = dimensions[d];
    std::move(dimensions.begin() + d + 1, dimensions.begin() + rank,
              dimensions.begin() + d);
    --rank;
    return taken;
  }

  /// Calls f(offset from, offset to) for all indices.
  template <class F>
  void for_each(F&& f) const {
    std::array<std::int64_t, maximum_rank> index = {};
    std::int64_t from = 0;
    std::int64_t to = 0;
    for (std::size_t d = 0;;) {
      f(from, to);
      for (d = 0; d < rank; ++d) {
        const Dimension& dimension = dimensions[d];
        from += dimension.from;
        to += dimension.to;
        if (++index[d] < dimension.extent) break;
        from -= dimension.extent * dimension.from;
        to -= dimension.extent * dimension.to;
        index[d] = 0;
      }
      if (d == rank) return;
    }
  }
};

/// The array as the side "from", packed elements as the side "to": the
/// innermost dimension first, and as few as the strides allow.
Box box_of(const ExternalArray& array) {
  Box box;
  if (array.strides.empty()) {
    box.dimensions[0].extent = array.size();
    return box;
  }
  box.rank = 0;
  std::int64_t packed = 1;
  for (std::size_t d = array.extents.size(); d-- > 0;) {
    const Dimension outer{array.extents[d], array.strides[d], packed};
    packed *= outer.extent;
    if (outer.extent == 1) continue;
    if (box.rank > 0) {
      Dimension& inner = box.dimensions[box.rank - 1];
      if (outer.from == inner.extent * inner.from) {
        inner.extent *= outer.extent;
        continue;
      }
    }
    box.dimensions[box.rank++] = outer;
  }
  box.rank = std::max(box.rank, std::size_t{1});
  return box;
}

/// Calls f(box, offset in the array, place in the range) for a few boxes that
/// together are the range.
template <class F>
void for_each_box(const ExternalArray& array, Range range, F&& f) {
  if (range.empty()) return;
  const Box whole = box_of(array);
  for (std::int64_t at = range.begin; at < range.end;) {
    // The outermost dimension of which whole indices begin here and fit.
    std::size_t d = 0;
    while (d + 1 < whole.rank && at % whole.dimensions[d + 1].to == 0 &&
           range.end - at >= whole.dimensions[d + 1].to)
      ++d;
    std::int64_t offset = 0;
    std::int64_t index = 0;
    for (std::size_t k = whole.rank; k-- > 0;) {
      const Dimension& dimension = whole.dimensions[k];
      const std::int64_t i = at / dimension.to % dimension.extent;
      offset += i * dimension.from;
      if (k == d) index = i;
    }
    Box box = whole;
    box.rank = d + 1;
    Dimension& last = box.dimensions[d];
    last.extent = std::min(last.extent - index, (range.end - at) / last.to);
    f(static_cast<const Box&>(box), offset, at - range.begin);
    at += last.extent * last.to;
  }
}

template <class T>
void copy_row(const T* from, T* to, const Dimension& row) {
  if (row.from == 1 && row.to == 1)
    std::memcpy(to, from, static_cast<std::size_t>(row.extent) * sizeof(T));
  else
    for (std::int64_t i = 0; i < row.extent; ++i)
      to[i * row.to] = from[i * row.from];
}

/// Columns lie along the fastest dimension of "from", rows along that of "to".
template <class T>
inline void copy_tile(const T* from, T* to, const Dimension& column,
                      const Dimension& row) {
  for (std::int64_t i = 0; i < column.extent; ++i)
    for (std::int64_t j = 0; j < row.extent; ++j)
      to[i * column.to + j * row.to] = from[i * column.from + j * row.from];
}

/// By tiles of a few lines of the cache, so that each line is used up while it
/// is there.
template <class T>
void transpose(const T* from, T* to, const Dimension& column,
               const Dimension& row) {
  constexpr std::int64_t side = sizeof(T) == 2 ? 32 : 16;
  const bool dense = column.from == 1 && row.to == 1;
  for (std::int64_t j = 0; j < row.extent; j += side)
    for (std::int64_t i = 0; i < column.extent; i += side) {
      const T* const source = from + i * column.from + j * row.from;
      T* const target = to + i * column.to + j * row.to;
      const std::int64_t columns = std::min(side, column.extent - i);
      const std::int64_t rows = std::min(side, row.extent - j);
      if (dense && columns == side && rows == side)
        copy_tile(source, target, {side, 1, column.to}, {side, row.from, 1});
      else
        copy_tile(source, target, {columns, column.from, column.to},
                  {rows, row.from, row.to});
    }
}

template <class T>
void copy_box(Box box, const T* from, T* to) {
  const std::size_t fast_from = box.fastest(&Dimension::from);
  const std::size_t fast_to = box.fastest(&Dimension::to);
  const std::size_t second = fast_to > fast_from ? fast_to - 1 : fast_to;
  const Dimension column = box.take(fast_from);
  if (fast_from == fast_to) {
    box.for_each([&](std::int64_t a, std::int64_t b) {
      copy_row(from + a, to + b, column);
    });
    return;
  }
  const Dimension row = box.take(second);
  box.for_each([&](std::int64_t a, std::int64_t b) {
    transpose(from + a, to + b, column, row);
  });
}

/// The same copy the other way round.
Box reversed(Box box) {
  for (Dimension& dimension : box.dimensions)
    std::swap(dimension.from, dimension.to);
  return box;
}

}  // namespace

void read_elements(const ExternalArray& from, Range range, void* to) {
  visit_dtype(from.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for_each_box(from, range,
                 [&](const Box& box, std::int64_t offset, std::int64_t place) {
                   copy_box(box, static_cast<const T*>(from.data) + offset,
                            static_cast<T*>(to) + place);
                 });
  });
}

void write_elements(const ExternalArray& to, Range range, const void* from) {
  visit_dtype(to.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for_each_box(to, range,
                 [&](const Box& box, std::int64_t offset, std::int64_t place) {
                   copy_box(reversed(box), static_cast<const T*>(from) + place,
                            static_cast<T*>(to.data) + offset);
                 });
  });
}

void fill_zero(const ExternalArray& array, Range range) {
  visit_dtype(array.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for_each_box(array, range, [&](Box box, std::int64_t offset, std::int64_t) {
      const Dimension row = box.take(box.fastest(&Dimension::from));
      T* const data = static_cast<T*>(array.data) + offset;
      box.for_each([&](std::int64_t begin, std::int64_t) {
        for (std::int64_t i = 0; i < row.extent; ++i)
          data[begin + i * row.from] = T{};
      });
    });
  });
}

std::int64_t block_elements(const ExternalArray& array) {
  constexpr std::int64_t least = std::int64_t{16} << 10;
  constexpr std::int64_t side = 16;
  if (array.size() <= least) return least;
  const Box box = box_of(array);
  const Dimension& fastest = box.dimensions[box.fastest(&Dimension::from)];
  return fastest.extent < side ? least : std::max(least, side * fastest.to);
}

}  // namespace kzero::detail
