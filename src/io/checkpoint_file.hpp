// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Checkpoint files (docs/checkpoint_format.md). How the elements come to the
// ranks that write, and from those that read, is the engine's business.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "io/array_ends.hpp"
#include "io/hdf5_view.hpp"
#include "io/manifest.hpp"
#include "io/new_file.hpp"
#include "io/open_file.hpp"

namespace kzero::detail {

/// Finds a layout's arrays by name. The layout outlives it.
class ArrayFinder {
 public:
  explicit ArrayFinder(const FileLayout& layout);
  ArrayFinder(const ArrayFinder&) = delete;
  ArrayFinder& operator=(const ArrayFinder&) = delete;
  /// Throws CheckpointError for an array that is not there.
  ArrayIndex find(const ParameterLayout& parameter,
                  const ArrayLayout& array) const;

 private:
  const FileLayout* layout_;
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::unordered_map<std::string_view, std::size_t> parameters_;
};

/// A file to be. All members throw CheckpointError; the destructor removes
/// what was written unless take_name() has returned. Of one rank; others may
/// write arrays, and give it their checksums.
class CheckpointWriter final : public ArraySink {
 public:
  /// Lays the file out, creates it, and makes sure that the disk has room.
  CheckpointWriter(const std::filesystem::path& path, FileLayout layout);

  const NewFile& file() const { return file_; }
  const StoredLayout& stored() const { return view_.stored; }

  /// Writes all elements of one array, in C order.
  void write(const ParameterLayout& parameter, const ArrayLayout& array,
             const void* data) override;

  /// Writes bytes of one array from its byte first on; first is a multiple of
  /// 8.
  void write_part(ArrayIndex index, std::int64_t first,
                  std::span<const std::byte> bytes);

  /// To the checksum of an array, for bytes that are written.
  void add(ArrayIndex index, std::uint64_t sum);

  /// Writes all but the arrays. durable: returns when all lies on disk.
  void finish(Durable durable = Durable::yes);

  /// Puts the finished file in the place of what stood at path.
  void take_name(Durable durable = Durable::yes);

 private:
  std::uint64_t write_metadata(const FileHeader& header);

  Hdf5View view_;
  NewFile file_;
  ArrayFinder finder_;
};

/// Whether checksums of arrays are looked at. Those of all else always are.
enum class Verify { no, yes };
/// Whether the caller's arrays are read at once.
enum class UserArrays { left_out, read };

/// An existing file. All members throw CheckpointError. Any thread may read.
class CheckpointReader final : public ArraySource {
 public:
  /// Throws for what is not a complete kzero file of a known version with
  /// checksums that are right.
  explicit CheckpointReader(const std::filesystem::path& path,
                            Verify verify = Verify::yes,
                            UserArrays user_arrays = UserArrays::read);

  const FileLayout& layout() const { return stored_.layout; }
  const StoredLayout& stored() const { return stored_; }
  std::int64_t bytes() const { return header_.file_bytes; }
  const FileHeader& file_header() const { return header_; }
  /// What no other checkpoint begins with.
  const std::string& header() const { return header_text_; }

  /// Reads all elements of one array, which must have this shape and type.
  void read(const ParameterLayout& parameter, const ArrayLayout& array,
            void* data) const override;

  /// Reads bytes of one array from its byte first on, whose checksum is the
  /// caller's to compare.
  void read_part(ArrayIndex index, std::int64_t first,
                 std::span<std::byte> bytes) const;

  /// Throws unless this is the checksum of an array.
  void check(ArrayIndex index, std::uint64_t sum) const;

  /// Calls f(first byte, bytes) for all of an array, piece by piece, and throws
  /// at the end when they are not as they were written.
  void read_pieces(
      const ParameterLayout& parameter, const ArrayLayout& array,
      const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
      const override;
  /// Likewise, whatever verify was.
  void read_pieces(
      ArrayIndex index,
      const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
      const;

  /// Reads all arrays and throws for the first that is not as it was written.
  void verify_arrays() const;

  /// Whether an array was not as it was written, or could not be read.
  bool is_damaged() const { return damaged_; }

 private:
  void read_user_arrays();
  /// Throws unless the array has this shape and type.
  ArrayIndex index_of(const ParameterLayout& parameter,
                      const ArrayLayout& array) const;
  void read_pieces(
      ArrayIndex index, Verify verify,
      const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
      const;
  void verify_metadata() const;
  void read_bytes(std::int64_t place, void* data, std::int64_t bytes) const;

  std::filesystem::path path_;
  Verify verify_;
  mutable std::atomic<bool> damaged_ = false;
  OpenFile file_;
  std::string header_text_;
  FileHeader header_;
  StoredLayout stored_;
  std::optional<ArrayFinder> finder_;
};

/// What is to be said of an array whose bytes are not those that were written.
std::string damage(const ParameterLayout& parameter, const ArrayLayout& array);

}  // namespace kzero::detail
