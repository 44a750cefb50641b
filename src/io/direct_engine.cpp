// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/direct_engine.hpp"

#include <algorithm>
#include <cstring>
#include <kzero/error.hpp>

#include "core/message.hpp"
#include "io/checksum.hpp"
#include "io/convert_elements.hpp"
#include "io/own_pieces.hpp"
#include "io/wire.hpp"
#include "optim/optimizer_access.hpp"

namespace kzero::detail {

namespace {

/// Calls f(elements) for stretches of at most piece_bytes.
template <class F>
void for_each_stretch(Range elements, std::int64_t element_bytes, F&& f) {
  const std::int64_t step = piece_bytes / element_bytes;
  for (std::int64_t begin = elements.begin; begin < elements.end; begin += step)
    f(Range{begin, std::min(begin + step, elements.end)});
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
    file.origins.for_each_member([&](const auto& each) { writer.put(each); });
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
  file.origins.for_each_member([&](auto& each) { reader.take(each); });
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
    for_each_stretch(piece.elements, piece.element_bytes, [&](Range elements) {
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

/// Reads pieces of arrays, likewise. What has another type in the file, or does
/// not lie in C order in memory, passes through a buffer.
class PieceReader {
 public:
  PieceReader(ShardedOptimizer& optimizer, const SharedFile& shared,
              const OpenFile& file, bool verify)
      : optimizer_(optimizer),
        shared_(shared),
        file_(file),
        verify_(verify),
        sums_(shared) {}

  /// types: of the piece, and in the file.
  void read(const OwnPiece& piece, DType dtype, DType in_file) {
    const std::int64_t width = size_of(in_file);
    const bool is_straight = piece.data != nullptr && dtype == in_file;
    const std::int64_t begin = shared_.arrays[piece.index].place;
    for_each_stretch(
        piece.elements, std::max(width, size_of(dtype)), [&](Range elements) {
          const std::int64_t place = elements.begin * width;
          const std::int64_t bytes = elements.size() * width;
          if (!parts_.takes(begin + place, bytes)) flush();
          Coming coming{piece.index, place, piece.id, elements,
                        nullptr,     dtype, in_file,  !is_straight};
          if (piece.data != nullptr)
            coming.to = piece.data + (elements.begin - piece.elements.begin) *
                                         size_of(dtype);
          parts_.add(begin + place, is_straight ? coming.to : room(bytes),
                     bytes);
          coming_.push_back(coming);
        });
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
    for (std::size_t i = 0; i < coming_.size(); ++i) {
      const OpenFile::Part& part = parts_.parts()[i];
      if (verify_)
        sums_.add(coming_[i].index, coming_[i].place, part.data, part.bytes);
      if (coming_[i].passes) pass_on(coming_[i], part.data);
    }
    coming_.clear();
    parts_.clear();
    used_ = 0;
  }

  PartialSums finish() {
    flush();
    return sums_.take();
  }

 private:
  struct Coming {
    ArrayIndex index;
    std::int64_t place = 0;
    ParameterId id;
    Range elements;
    std::byte* to = nullptr;  // null: not in C order
    DType dtype = DType::float32;
    DType in_file = DType::float32;
    bool passes = false;  // through the buffer
  };

  /// In the buffer, until the next flush: parts take no more than one piece.
  std::byte* room(std::int64_t bytes) {
    buffer_.resize(static_cast<std::size_t>(piece_bytes));
    used_ += bytes;
    return buffer_.data() + (used_ - bytes);
  }

  void pass_on(const Coming& coming, const std::byte* from) {
    const std::int64_t count = coming.elements.size();
    if (coming.to != nullptr)
      return convert_elements(coming.in_file, from, coming.dtype, coming.to,
                              count);
    if (coming.dtype != coming.in_file) {
      converted_.resize(static_cast<std::size_t>(piece_bytes));
      convert_elements(coming.in_file, from, coming.dtype, converted_.data(),
                       count);
      from = converted_.data();
    }
    OptimizerAccess::write_value(optimizer_, coming.id, coming.elements, from);
  }

  ShardedOptimizer& optimizer_;
  const SharedFile& shared_;
  const OpenFile& file_;
  bool verify_;
  SumsOfArrays sums_;
  PartsOfFile parts_;
  std::vector<Coming> coming_;  // as the parts
  std::vector<std::byte> buffer_;
  std::int64_t used_ = 0;  // bytes of the buffer
  std::vector<std::byte> converted_;
};

}  // namespace

PartialSums read_own_pieces(ShardedOptimizer& optimizer,
                            const FileLayout& layout, const SharedFile& shared,
                            const OpenFile& file, bool verify) {
  PieceReader reader(optimizer, shared, file, verify);
  for_each_own_piece(optimizer, layout, [&](const OwnPiece& piece) {
    const auto [parameter, array] = piece.index;
    const auto of_parameter = shared.origins[parameter];
    if (of_parameter.empty()) return;
    const ElementOrigin& origin = of_parameter[array];
    if (origin.is_in_file())
      return reader.read(piece,
                         layout.parameters[parameter].arrays[array].dtype,
                         origin.dtype);
    reader.flush();  // the value may be among what is coming
    if (origin.source == ElementSource::value)
      OptimizerAccess::read_as_main(optimizer, piece.id, piece.elements,
                                    piece.data);
    else
      std::memset(piece.data, 0, static_cast<std::size_t>(piece.bytes()));
  });
  return reader.finish();
}

}  // namespace kzero::detail
