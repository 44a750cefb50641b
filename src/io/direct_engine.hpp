// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Engine "direct": the root has laid the file out, and every rank writes, or
// reads, what it owns at its place, without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <kzero/sharded_optimizer.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/file_layout.hpp"
#include "io/layout_match.hpp"
#include "io/manifest.hpp"
#include "io/new_file.hpp"
#include "io/open_file.hpp"

namespace kzero::detail {

/// What every rank has to know of a file. Travels from the root.
struct SharedFile {
  std::string path;
  std::string temporary;        // of a new one
  std::string mark;             // its first bytes
  ByArray<StoredArray> arrays;  // as in the model's layout
  ElementOrigins origins;       // of one that is loaded
};

/// Collective. Root's, on every rank.
void broadcast(Communicator& communicator, SharedFile& file, Subject subject,
               int root);

/// The checksums of what this rank has written or read, by array.
using PartialSums = std::vector<std::int64_t>;

/// What one call moves to or from the file: the second cache holds it, where
/// the checksum has just read it.
inline constexpr std::int64_t piece_bytes = std::int64_t{256} << 10;

/// Memory that lies side by side in the file.
class PartsOfFile {
 public:
  PartsOfFile() { parts_.reserve(OpenFile::most_parts); }

  /// Whether bytes at this place of the file can be added.
  bool takes(std::int64_t place, std::int64_t bytes) const {
    return parts_.empty() ||
           (place == begin_ + bytes_ && bytes_ + bytes <= piece_bytes &&
            parts_.size() < OpenFile::most_parts);
  }
  void add(std::int64_t place, std::byte* data, std::int64_t bytes) {
    if (parts_.empty()) begin_ = place;
    parts_.push_back({data, bytes});
    bytes_ += bytes;
  }
  bool empty() const { return parts_.empty(); }
  std::int64_t place() const { return begin_; }
  std::span<const OpenFile::Part> parts() const { return parts_; }
  void clear() {
    parts_.clear();
    bytes_ = 0;
  }

 private:
  std::vector<OpenFile::Part> parts_;
  std::int64_t begin_ = 0;
  std::int64_t bytes_ = 0;
};

/// Adds up the checksums of pieces of arrays.
class SumsOfArrays {
 public:
  /// Which outlives it.
  explicit SumsOfArrays(const SharedFile& shared)
      : arrays_(shared.arrays), sums_(shared.arrays.all().size()) {}
  void add(ArrayIndex index, std::int64_t place, const void* data,
           std::int64_t bytes);
  PartialSums take() { return std::move(sums_); }

 private:
  const ByArray<StoredArray>& arrays_;
  PartialSums sums_;
};

/// Writes pieces of arrays, those that are neighbours in the file in one call.
/// Local, any thread. Members throw CheckpointError.
class PieceWriter {
 public:
  /// Both outlive it.
  PieceWriter(const SharedFile& shared, const PartOfNewFile& file);

  /// data: valid until the next flush.
  void write(ArrayIndex index, std::int64_t place, std::byte* data,
             std::int64_t bytes);
  void flush();
  /// After all have been written.
  PartialSums finish();

 private:
  const SharedFile& shared_;
  const PartOfNewFile& file_;
  SumsOfArrays sums_;
  PartsOfFile parts_;
};

/// Local. Writes what this rank owns. Throws CheckpointError.
PartialSums write_own_pieces(ShardedOptimizer& optimizer,
                             const FileLayout& layout, const SharedFile& shared,
                             const PartOfNewFile& file);

/// Local. Reads what this rank owns of the loaded parameters from where origins
/// says. Without verify the sums are 0. Throws CheckpointError.
PartialSums read_own_pieces(ShardedOptimizer& optimizer,
                            const FileLayout& layout, const SharedFile& shared,
                            const OpenFile& file, bool verify);

}  // namespace kzero::detail
