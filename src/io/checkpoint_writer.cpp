// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <kzero/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checksum.hpp"

namespace kzero::detail {

namespace {

// What the second cache holds: the checksum reads, the write reads again.
constexpr std::int64_t piece = std::int64_t{256} << 10;

}  // namespace

ArrayFinder::ArrayFinder(const FileLayout& layout)
    : layout_(&layout), parameters_(layout.parameters.size(), &memory_) {
  for (std::size_t i = 0; i < layout.parameters.size(); ++i)
    parameters_.emplace(layout.parameters[i].name, i);
}

ArrayIndex ArrayFinder::find(const ParameterLayout& parameter,
                             const ArrayLayout& array) const {
  const auto place = parameters_.find(parameter.name);
  if (place == parameters_.end())
    throw CheckpointError(
        concat("there is no parameter ", detail::quoted(parameter.name)));
  const auto& arrays = layout_->parameters[place->second].arrays;
  const auto found = std::ranges::find(arrays, array.name, &ArrayLayout::name);
  if (found == arrays.end())
    throw CheckpointError(concat("the parameter ",
                                 detail::quoted(parameter.name),
                                 " has no array ", detail::quoted(array.name)));
  return {place->second, static_cast<std::size_t>(found - arrays.begin())};
}

CheckpointWriter::CheckpointWriter(const std::filesystem::path& path,
                                   FileLayout layout)
    : view_(make_hdf5_view(std::move(layout))),
      file_(path),
      finder_(view_.stored.layout) {
  file_.reserve(view_.image.size());
}

void CheckpointWriter::write(const ParameterLayout& parameter,
                             const ArrayLayout& array, const void* data) {
  write_part(finder_.find(parameter, array), 0,
             {static_cast<const std::byte*>(data),
              static_cast<std::size_t>(array_bytes(parameter, array.dtype))});
}

void CheckpointWriter::write_part(ArrayIndex index, std::int64_t first,
                                  std::span<const std::byte> bytes) {
  const std::int64_t place = view_.stored.arrays[index].place + first;
  for (std::int64_t done = 0; done < std::ssize(bytes); done += piece) {
    const std::int64_t count = std::min(piece, std::ssize(bytes) - done);
    add(index, checksum(first + done, bytes.data() + done, count));
    file_.write(place + done, bytes.data() + done, count);
  }
}

void CheckpointWriter::add(ArrayIndex index, std::uint64_t sum) {
  view_.stored.arrays[index].sum += sum;
}

std::uint64_t CheckpointWriter::write_metadata(const FileHeader& header) {
  std::uint64_t sum = 0;
  const auto write_stretch = [&](const Stretch& stretch, bool is_counted) {
    view_.image.for_each_piece(
        stretch.place, stretch.bytes,
        [&](std::int64_t place, std::span<const std::byte> bytes) {
          if (is_counted)
            sum += checksum(place, bytes.data(), std::ssize(bytes));
          file_.write(place, bytes.data(), std::ssize(bytes));
        });
  };
  for (const Stretch& stretch : metadata_stretches(view_.stored, header))
    write_stretch(stretch, true);
  const UserData& user = view_.stored.layout.content.user;
  for (const auto& [name, array] : view_.stored.user)
    write_stretch({array.place, array_bytes(user.at(name))}, false);
  return sum;
}

void CheckpointWriter::finish(Durable durable) {
  view_.manifest.put_sums(view_.stored.arrays);
  const std::string& manifest = view_.manifest.text();
  FileHeader header{view_.image.size(), view_.manifest_place,
                    std::ssize(manifest),
                    checksum(0, manifest.data(), std::ssize(manifest)), 0};
  file_.write(view_.manifest_place, manifest.data(), std::ssize(manifest));
  header.metadata_sum = write_metadata(header);
  file_.write(0, header_text(header).data(), header_bytes);
  file_.finish(durable);
}

void CheckpointWriter::take_name(Durable durable) { file_.take_name(durable); }

}  // namespace kzero::detail
