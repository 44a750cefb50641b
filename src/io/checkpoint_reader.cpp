// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <kzero/error.hpp>
#include <string>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checksum.hpp"
#include "io/element_count.hpp"

namespace kzero::detail {

namespace {

constexpr std::int64_t piece = std::int64_t{256} << 10;
constexpr std::string_view hdf5_signature("\x89HDF\r\n\x1a\n");
constexpr std::string_view unfinished = "kzero unfinished ";

/// Calls f and puts the path into the message of what it throws.
template <class F>
void naming_path(const std::filesystem::path& path, F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    throw CheckpointError(concat("cannot load the checkpoint ",
                                 detail::quoted(path.string()), " (",
                                 error.what(), ")"));
  }
}

OpenFile open_for_reading(const std::filesystem::path& path) {
  if (path.empty())
    throw CheckpointError("the path names no file: give folder and name");
  OpenFile file(path, O_RDONLY);
  int error = file.is_open() ? 0 : errno;
  std::error_code ignored;
  if (error == 0 && std::filesystem::is_directory(path, ignored))
    error = EISDIR;
  if (error == 0) return file;
  throw CheckpointError(error_text(error) +
                        ": give a file that save_checkpoint has written");
}

FileHeader header_of(const OpenFile& file, std::string& text) {
  const std::int64_t size = file.size();
  text.assign(
      static_cast<std::size_t>(std::clamp<std::int64_t>(size, 0, header_bytes)),
      '\0');
  if (file.read(0, text.data(), std::ssize(text)).error != 0)
    throw CheckpointError("it cannot be read");
  if (text.starts_with(hdf5_signature))
    throw CheckpointError("it is an HDF5 file, but not one of kzero");
  if (text.starts_with(unfinished))
    throw CheckpointError("it is incomplete: its writer was stopped");
  const FileHeader header = read_header(text);
  if (size != header.file_bytes)
    throw CheckpointError(
        concat("it has ", size, " bytes, expected ", header.file_bytes,
               ": it is ", size < header.file_bytes ? "truncated" : "damaged"));
  return header;
}

}  // namespace

std::string damage(const ParameterLayout& parameter, const ArrayLayout& array) {
  return concat("the array ", detail::quoted(array.name), " of the parameter ",
                detail::quoted(parameter.name),
                " is damaged: its checksum is not the one that was written");
}

CheckpointReader::CheckpointReader(const std::filesystem::path& path,
                                   Verify verify, UserArrays user_arrays)
    : path_(path), verify_(verify) {
  naming_path(path_, [&] {
    file_ = open_for_reading(path_);
    header_ = header_of(file_, header_text_);
    std::string manifest(static_cast<std::size_t>(header_.manifest_bytes),
                         '\0');
    read_bytes(header_.manifest_place, manifest.data(), std::ssize(manifest));
    if (checksum(0, manifest.data(), std::ssize(manifest)) !=
        header_.manifest_sum)
      throw CheckpointError("its manifest is damaged");
    stored_ = read_manifest(manifest, header_);
    finder_.emplace(stored_.layout);
    verify_metadata();
    if (user_arrays == UserArrays::read) read_user_arrays();
  });
}

void CheckpointReader::read_bytes(std::int64_t place, void* data,
                                  std::int64_t bytes) const {
  const OpenFile::Outcome outcome = file_.read(place, data, bytes);
  if (outcome.error == 0) return;
  damaged_ = true;
  throw CheckpointError(concat("reading stopped at byte ", outcome.place,
                               " of ", header_.file_bytes, ": ",
                               error_text(outcome.error)));
}

void CheckpointReader::verify_metadata() const {
  std::uint64_t sum = 0;
  std::vector<std::byte> buffer(static_cast<std::size_t>(piece));
  for (const Stretch& stretch : metadata_stretches(stored_, header_))
    for (std::int64_t done = 0; done < stretch.bytes; done += piece) {
      const std::int64_t count = std::min(piece, stretch.bytes - done);
      read_bytes(stretch.place + done, buffer.data(), count);
      sum += checksum(stretch.place + done, buffer.data(), count);
    }
  if (sum != header_.metadata_sum)
    throw CheckpointError("HDF5's part of it is damaged");
}

void CheckpointReader::read_user_arrays() {
  for (const auto& entry : stored_.user) {
    const std::string& name = entry.first;
    const StoredArray& stored = entry.second;
    std::visit(
        [&]<class T>(T& value) {
          if constexpr (requires { value.extents; }) {
            value.values.resize(
                static_cast<std::size_t>(element_count(value.extents)));
            const auto bytes = static_cast<std::int64_t>(
                value.values.size() * sizeof value.values[0]);
            read_bytes(stored.place, value.values.data(), bytes);
            if (checksum(0, value.values.data(), bytes) != stored.sum)
              throw CheckpointError(
                  concat("user data ", detail::quoted(name), " is damaged"));
          }
        },
        stored_.layout.content.user.at(name));
  }
}

ArrayIndex CheckpointReader::index_of(const ParameterLayout& parameter,
                                      const ArrayLayout& array) const {
  ArrayIndex index;
  naming_path(path_, [&] {
    index = finder_->find(parameter, array);
    const ParameterLayout& found = layout().parameters[index.parameter];
    if (found.extents != parameter.extents ||
        found.arrays[index.array].dtype != array.dtype)
      throw CheckpointError(
          concat("the array ", detail::quoted(array.name), " of the parameter ",
                 detail::quoted(parameter.name), " has another shape or type"));
  });
  return index;
}

void CheckpointReader::read(const ParameterLayout& parameter,
                            const ArrayLayout& array, void* data) const {
  const ArrayIndex index = index_of(parameter, array);
  const std::int64_t bytes = array_bytes(parameter, array.dtype);
  auto* const to = static_cast<std::byte*>(data);
  std::uint64_t sum = 0;
  for (std::int64_t done = 0; done < bytes; done += piece) {
    const std::span part(
        to + done, static_cast<std::size_t>(std::min(piece, bytes - done)));
    read_part(index, done, part);
    if (verify_ == Verify::yes)
      sum += checksum(done, part.data(), std::ssize(part));
  }
  if (verify_ == Verify::yes) check(index, sum);
}

void CheckpointReader::check(ArrayIndex index, std::uint64_t sum) const {
  if (sum == stored_.arrays[index].sum) return;
  damaged_ = true;
  const ParameterLayout& parameter = layout().parameters[index.parameter];
  naming_path(path_, [&] {
    throw CheckpointError(damage(parameter, parameter.arrays[index.array]));
  });
}

void CheckpointReader::read_part(ArrayIndex index, std::int64_t first,
                                 std::span<std::byte> bytes) const {
  naming_path(path_, [&] {
    read_bytes(stored_.arrays[index].place + first, bytes.data(),
               std::ssize(bytes));
  });
}

void CheckpointReader::read_pieces(
    const ParameterLayout& parameter, const ArrayLayout& array,
    const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
    const {
  read_pieces(index_of(parameter, array), verify_, f);
}

void CheckpointReader::read_pieces(
    ArrayIndex index,
    const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
    const {
  read_pieces(index, Verify::yes, f);
}

void CheckpointReader::read_pieces(
    ArrayIndex index, Verify verify,
    const std::function<void(std::int64_t, std::span<const std::byte>)>& f)
    const {
  const ParameterLayout& parameter = layout().parameters[index.parameter];
  const std::int64_t bytes =
      array_bytes(parameter, parameter.arrays[index.array].dtype);
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::min(piece, bytes)));
  std::uint64_t sum = 0;
  for (std::int64_t done = 0; done < bytes; done += piece) {
    const auto part = std::span(buffer).first(
        static_cast<std::size_t>(std::min(piece, bytes - done)));
    read_part(index, done, part);
    if (verify == Verify::yes)
      sum += checksum(done, part.data(), std::ssize(part));
    f(done, part);
  }
  if (verify == Verify::yes) check(index, sum);
}

void CheckpointReader::verify_arrays() const {
  for (std::size_t i = 0; i < stored_.arrays.size(); ++i)
    for (std::size_t k = 0; k < stored_.arrays[i].size(); ++k)
      read_pieces({i, k}, [](std::int64_t, std::span<const std::byte>) {});
}

}  // namespace kzero::detail
