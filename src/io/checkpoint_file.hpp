// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The format of checkpoint files (docs/format.md): which groups, datasets and
// attributes stand where. How the elements come to the rank that writes, and
// from the one that reads, is the engine's business.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/array_ends.hpp"
#include "io/element_types.hpp"
#include "io/file_layout.hpp"
#include "io/hdf5_call.hpp"
#include "io/hdf5_objects.hpp"
#include "io/new_file.hpp"

namespace kzero::detail {

inline constexpr std::int64_t format_major = 1;
inline constexpr std::int64_t format_minor = 1;

/// A file to be. All members throw CheckpointError; the destructor removes
/// what was written unless take_name() has returned. Local, of one rank.
class CheckpointWriter final : public ArraySink {
 public:
  /// Creates the file with everything but the elements, and makes sure that
  /// the disk has room for them.
  CheckpointWriter(const std::filesystem::path& path, const FileLayout& layout,
                   std::int64_t call_bytes = largest_call);

  /// Writes all elements of one array, in C order.
  void write(const ParameterLayout& parameter, const ArrayLayout& array,
             const void* data) override;

  /// Marks the file as complete. Returns when all of it lies on disk.
  void finish();

  /// Puts the finished file in the place of what stood at path.
  void take_name();

 private:
  SilentHdf5 silence_;
  NewFile file_;
  ElementTypes types_;
  std::int64_t call_bytes_;
  Handle driver_;  // outlives what it writes
  Handle hdf5_;
  Handle parameters_;
};

/// An existing file. All members throw CheckpointError. Local, of one rank.
class CheckpointReader final : public ArraySource {
 public:
  /// Throws for what is not a complete kzero file of a known version.
  explicit CheckpointReader(const std::filesystem::path& path,
                            std::int64_t call_bytes = largest_call);

  FileLayout layout() const;

  /// Reads all elements of one array, which must have this shape and type.
  void read(const ParameterLayout& parameter, const ArrayLayout& array,
            void* data) const override;

 private:
  SilentHdf5 silence_;
  std::filesystem::path path_;
  ElementTypes types_;
  std::int64_t call_bytes_;
  Handle hdf5_;
};

}  // namespace kzero::detail
