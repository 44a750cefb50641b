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

/// Calls f(elements) for stretches that one call moves.
template <class F>
void for_each_stretch(const OwnPiece& piece, F&& f) {
  const std::int64_t step = piece_bytes / piece.element_bytes;
  for (std::int64_t begin = piece.elements.begin; begin < piece.elements.end;
       begin += step)
    f(Range{begin, std::min(begin + step, piece.elements.end)});
}

}  // namespace

void broadcast(Communicator& communicator, SharedFile& file, Subject subject,
               int root) {
  WireWriter writer;
  if (communicator.rank() == root) {
    writer.put(std::string_view(file.path));
    writer.put(std::string_view(file.temporary));
    writer.put(std::string_view(file.mark));
    file.arrays.for_each_member([&](const auto& each) { writer.put(each); });
    file.sources.for_each_member([&](const auto& each) { writer.put(each); });
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
  file.arrays.for_each_member([&](auto& each) { reader.take(each); });
  file.sources.for_each_member([&](auto& each) { reader.take(each); });
}

void SumsOfArrays::add(ArrayIndex index, std::int64_t place, const void* data,
                       std::int64_t bytes) {
  std::int64_t& sum = sums_[arrays_.place(index)];
  sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                  checksum(place, data, bytes));
}

PieceWriter::PieceWriter(const SharedFile& shared, const PartOfNewFile& file)
    : shared_(shared), file_(file), sums_(shared) {}

void PieceWriter::write(ArrayIndex index, std::int64_t place, std::byte* data,
                        std::int64_t bytes) {
  const std::int64_t begin = shared_.arrays[index].place;
  for (std::int64_t done = 0; done < bytes; done += piece_bytes) {
    const std::int64_t count = std::min(piece_bytes, bytes - done);
    sums_.add(index, place + done, data + done, count);
    if (!parts_.takes(begin + place + done, count)) flush();
    parts_.add(begin + place + done, data + done, count);
  }
}

void PieceWriter::flush() {
  if (!parts_.empty()) file_.write(parts_.place(), parts_.parts());
  parts_.clear();
}

PartialSums PieceWriter::finish() {
  flush();
  return sums_.take();
}

PartialSums write_own_pieces(ShardedOptimizer& optimizer,
                             const FileLayout& layout, const SharedFile& shared,
                             const PartOfNewFile& file) {
  PieceWriter writer(shared, file);
  std::vector<std::byte> strided;
  for_each_own_piece(optimizer, layout, [&](const OwnPiece& piece) {
    if (piece.data != nullptr)
      return writer.write(piece.index, piece.place(), piece.data,
                          piece.bytes());
    strided.resize(static_cast<std::size_t>(piece_bytes));
    for_each_stretch(piece, [&](Range elements) {
      OptimizerAccess::read_value(optimizer, piece.id, elements,
                                  strided.data());
      writer.write(piece.index, elements.begin * piece.element_bytes,
                   strided.data(), elements.size() * piece.element_bytes);
      writer.flush();
    });
  });
  return writer.finish();
}

namespace {

/// Reads pieces of arrays, likewise.
class PieceReader {
 public:
  PieceReader(const SharedFile& shared, const OpenFile& file, bool verify)
      : shared_(shared), file_(file), verify_(verify), sums_(shared) {}

  void read(ArrayIndex index, std::int64_t place, std::byte* data,
            std::int64_t bytes) {
    const std::int64_t begin = shared_.arrays[index].place;
    for (std::int64_t done = 0; done < bytes; done += piece_bytes) {
      const std::int64_t count = std::min(piece_bytes, bytes - done);
      if (!parts_.takes(begin + place + done, count)) flush();
      parts_.add(begin + place + done, data + done, count);
      coming_.push_back({index, place + done});
    }
  }

  void flush() {
    if (parts_.empty()) return;
    const OpenFile::Outcome outcome =
        file_.read(parts_.place(), parts_.parts());
    if (outcome.error != 0)
      throw CheckpointError(concat("cannot load the checkpoint ",
                                   detail::quoted(shared_.path),
                                   " (reading stopped at byte ", outcome.place,
                                   ": ", error_text(outcome.error), ")"));
    for (std::size_t i = 0; verify_ && i < coming_.size(); ++i)
      sums_.add(coming_[i].index, coming_[i].place, parts_.parts()[i].data,
                parts_.parts()[i].bytes);
    coming_.clear();
    parts_.clear();
  }

  PartialSums finish() {
    flush();
    return sums_.take();
  }

 private:
  struct Coming {
    ArrayIndex index;
    std::int64_t place = 0;
  };

  const SharedFile& shared_;
  const OpenFile& file_;
  bool verify_;
  SumsOfArrays sums_;
  PartsOfFile parts_;
  std::vector<Coming> coming_;  // as the parts
};

}  // namespace

PartialSums read_own_pieces(ShardedOptimizer& optimizer,
                            const FileLayout& layout, const SharedFile& shared,
                            const OpenFile& file, bool verify) {
  PieceReader reader(shared, file, verify);
  std::vector<std::byte> strided;
  const auto read_strided = [&](const OwnPiece& piece) {
    strided.resize(static_cast<std::size_t>(piece_bytes));
    reader.flush();
    for_each_stretch(piece, [&](Range elements) {
      reader.read(piece.index, elements.begin * piece.element_bytes,
                  strided.data(), elements.size() * piece.element_bytes);
      reader.flush();
      OptimizerAccess::write_value(optimizer, piece.id, elements,
                                   strided.data());
    });
  };
  for_each_own_piece(optimizer, layout, [&](const OwnPiece& piece) {
    const auto of_parameter = shared.sources[piece.index.parameter];
    if (of_parameter.empty()) return;
    const ElementSource source = of_parameter[piece.index.array];
    if (source == ElementSource::file) {
      if (piece.data == nullptr) return read_strided(piece);
      return reader.read(piece.index, piece.place(), piece.data, piece.bytes());
    }
    reader.flush();  // the value may be among what is coming
    if (source == ElementSource::value)
      OptimizerAccess::read_as_main(optimizer, piece.id, piece.elements,
                                    piece.data);
    else
      std::memset(piece.data, 0, static_cast<std::size_t>(piece.bytes()));
  });
  return reader.finish();
}

}  // namespace kzero::detail
