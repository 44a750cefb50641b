// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/direct_engine.hpp"

#include <algorithm>
#include <cstring>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/checksum.hpp"
#include "io/own_pieces.hpp"
#include "io/wire.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

// What the second cache holds: the checksum reads, the file's call again.
constexpr std::int64_t chunk = std::int64_t{256} << 10;

/// Collects parts that lie side by side in the file, and moves them by
/// transfer(place, parts) when they are enough, or others come.
template <class Transfer>
class Batch {
 public:
  explicit Batch(Transfer transfer) : transfer_(std::move(transfer)) {
    parts_.reserve(OpenFile::most_parts);
  }

  void add(std::int64_t place, std::byte* data, std::int64_t bytes) {
    if (place != begin_ + bytes_ || bytes_ + bytes > chunk ||
        parts_.size() == OpenFile::most_parts)
      flush();
    if (parts_.empty()) begin_ = place;
    parts_.push_back({data, bytes});
    bytes_ += bytes;
  }

  void flush() {
    if (!parts_.empty())
      transfer_(begin_, std::span<const OpenFile::Part>(parts_));
    parts_.clear();
    begin_ += bytes_;
    bytes_ = 0;
  }

 private:
  Transfer transfer_;
  std::vector<OpenFile::Part> parts_;
  std::int64_t begin_ = 0;
  std::int64_t bytes_ = 0;
};

/// Calls f(elements) for stretches of about a chunk.
template <class F>
void for_each_chunk(const OwnPiece& piece, F&& f) {
  const std::int64_t step = chunk / piece.element_bytes;
  for (std::int64_t begin = piece.elements.begin; begin < piece.elements.end;
       begin += step)
    f(Range{begin, std::min(begin + step, piece.elements.end)});
}

/// Adds to the checksums of arrays.
class Sums {
 public:
  explicit Sums(const SharedFile& shared)
      : first_(first_arrays(shared.arrays)) {
    sums_.assign(first_.back(), 0);
  }

  void add(const OwnPiece& piece, std::int64_t place, const void* data,
           std::int64_t bytes) {
    std::int64_t& sum =
        sums_[first_[piece.index.parameter] + piece.index.array];
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                    checksum(place, data, bytes));
  }

  PartialSums take() { return std::move(sums_); }

 private:
  std::vector<std::size_t> first_;
  PartialSums sums_;
};

}  // namespace

void broadcast(Communicator& communicator, SharedFile& file, Subject subject,
               int root) {
  WireWriter writer;
  if (communicator.rank() == root) {
    writer.put(std::string_view(file.path));
    writer.put(std::string_view(file.temporary));
    writer.put(std::string_view(file.mark));
    std::vector<std::int64_t> numbers;
    for (const auto& arrays : file.arrays) {
      numbers.push_back(std::ssize(arrays));
      for (const StoredArray& each : arrays) {
        numbers.push_back(each.place);
        numbers.push_back(static_cast<std::int64_t>(each.sum));
      }
    }
    writer.put(numbers);
    std::vector<std::vector<std::int64_t>> sources;
    for (const auto& of_parameter : file.sources) {
      auto& codes = sources.emplace_back();
      for (const ElementSource each : of_parameter)
        codes.push_back(static_cast<std::int64_t>(each));
    }
    writer.put(sources);
  }
  auto size = std::ssize(writer.bytes());
  communicator.broadcast(&size, sizeof size, root, subject);
  writer.bytes().resize(static_cast<std::size_t>(size));
  communicator.broadcast(writer.bytes().data(), size, root, subject);
  if (communicator.rank() == root) return;
  WireReader reader(writer.bytes());
  reader.take(file.path);
  reader.take(file.temporary);
  reader.take(file.mark);
  std::vector<std::int64_t> numbers;
  reader.take(numbers);
  for (auto next = numbers.begin(); next != numbers.end();) {
    auto& arrays = file.arrays.emplace_back();
    for (std::int64_t count = *next++; count > 0; --count) {
      arrays.push_back({next[0], static_cast<std::uint64_t>(next[1])});
      next += 2;
    }
  }
  std::vector<std::vector<std::int64_t>> sources;
  reader.take(sources);
  for (const auto& codes : sources) {
    auto& of_parameter = file.sources.emplace_back();
    for (const std::int64_t code : codes)
      of_parameter.push_back(static_cast<ElementSource>(code));
  }
}

std::vector<std::size_t> first_arrays(
    const std::vector<std::vector<StoredArray>>& arrays) {
  std::vector<std::size_t> first = {0};
  for (const auto& each : arrays) first.push_back(first.back() + each.size());
  return first;
}

PartialSums write_own_pieces(ShardedOptimizer& optimizer,
                             const FileLayout& layout, const SharedFile& shared,
                             const PartOfNewFile& file) {
  Sums sums(shared);
  Batch batch([&](std::int64_t place, std::span<const OpenFile::Part> parts) {
    file.write(place, parts);
  });
  std::vector<std::byte> strided;
  for_each_own_piece(optimizer, layout, [&](const OwnPiece& piece) {
    const std::int64_t begin =
        shared.arrays[piece.index.parameter][piece.index.array].place;
    for_each_chunk(piece, [&](Range elements) {
      const std::int64_t place = elements.begin * piece.element_bytes;
      const std::int64_t bytes = elements.size() * piece.element_bytes;
      std::byte* data = nullptr;
      if (piece.data != nullptr) {
        data = piece.data + (place - piece.place());
      } else {
        batch.flush();
        strided.resize(static_cast<std::size_t>(chunk));
        data = strided.data();
        OptimizerAccess::read_value(optimizer, piece.id, elements, data);
      }
      sums.add(piece, place, data, bytes);
      batch.add(begin + place, data, bytes);
      if (piece.data == nullptr) batch.flush();
    });
  });
  batch.flush();
  return sums.take();
}

PartialSums read_own_pieces(ShardedOptimizer& optimizer,
                            const FileLayout& layout, const SharedFile& shared,
                            const OpenFile& file) {
  Sums sums(shared);
  const auto read = [&](std::int64_t place,
                        std::span<const OpenFile::Part> parts) {
    const OpenFile::Outcome outcome = file.read(place, parts);
    if (outcome.error != 0)
      throw CheckpointError(concat("cannot load the checkpoint ",
                                   detail::quoted(shared.path),
                                   " (reading stopped at byte ", outcome.place,
                                   ": ", error_text(outcome.error), ")"));
  };
  // What is read in one batch is summed when it has come.
  struct Coming {
    OwnPiece piece;
    std::int64_t place;
    std::byte* data;
    std::int64_t bytes;
  };
  std::vector<Coming> coming;
  Batch batch([&](std::int64_t place, std::span<const OpenFile::Part> parts) {
    read(place, parts);
    for (const Coming& each : coming)
      sums.add(each.piece, each.place, each.data, each.bytes);
    coming.clear();
  });
  std::vector<std::byte> strided;
  const auto read_piece = [&](const OwnPiece& piece) {
    const std::int64_t begin =
        shared.arrays[piece.index.parameter][piece.index.array].place;
    for_each_chunk(piece, [&](Range elements) {
      const std::int64_t place = elements.begin * piece.element_bytes;
      const std::int64_t bytes = elements.size() * piece.element_bytes;
      if (piece.data == nullptr) {
        batch.flush();
        strided.resize(static_cast<std::size_t>(chunk));
      }
      std::byte* const data = piece.data != nullptr
                                  ? piece.data + (place - piece.place())
                                  : strided.data();
      batch.add(begin + place, data, bytes);
      coming.push_back({piece, place, data, bytes});
      if (piece.data != nullptr) return;
      batch.flush();
      OptimizerAccess::write_value(optimizer, piece.id, elements, data);
    });
  };
  for_each_own_piece(optimizer, layout, [&](const OwnPiece& piece) {
    const auto& of_parameter = shared.sources[piece.index.parameter];
    if (of_parameter.empty()) return;
    const ElementSource source = of_parameter[piece.index.array];
    if (source == ElementSource::file) return read_piece(piece);
    batch.flush();  // the value may be among what is coming
    if (source == ElementSource::value)
      OptimizerAccess::read_as_main(optimizer, piece.id, piece.elements,
                                    piece.data);
    else
      std::memset(piece.data, 0, static_cast<std::size_t>(piece.bytes()));
  });
  batch.flush();
  return sums.take();
}

}  // namespace kzero::detail
