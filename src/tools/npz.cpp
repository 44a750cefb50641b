// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/npz.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <kzero/error.hpp>
#include <memory>
#include <utility>

#include "core/message.hpp"
#include "io/element_count.hpp"
#include "tools/npy.hpp"
#include "tools/zip_file.hpp"

namespace kzero::tools {

namespace {

using detail::concat;

constexpr std::string_view suffix = ".npy";
constexpr std::string_view manifest_name = "__kzero_manifest__";
constexpr std::string_view byte_type = "|u1";
constexpr std::int64_t longest_manifest = std::int64_t{1} << 30;
constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;

/// All bytes, for which memory is taken as they come: what a packed file says
/// of itself need not be true.
template <class Bytes>
Bytes read_whole(std::int64_t bytes,
                 const std::function<void(std::span<std::byte>)>& read) {
  Bytes all;
  for (std::int64_t done = 0; done < bytes; done += piece_bytes) {
    const std::int64_t count = std::min(piece_bytes, bytes - done);
    all.resize(static_cast<std::size_t>(done + count));
    read(std::as_writable_bytes(
        std::span(all).subspan(static_cast<std::size_t>(done))));
  }
  return all;
}

/// What stands before the elements.
NpyHeader take_header(ZipFile::Reader& reader) {
  std::string text(npy_prelude_bytes, '\0');
  reader.read(std::as_writable_bytes(std::span(text)));
  const auto bytes = static_cast<std::size_t>(npy_header_bytes(text));
  text.resize(std::max(bytes, text.size()), '\0');
  reader.read(std::as_writable_bytes(
      std::span(text).subspan(static_cast<std::size_t>(npy_prelude_bytes))));
  return parse_npy_header(text);
}

class MemberStream final : public ByteStream {
 public:
  MemberStream(std::shared_ptr<const ZipFile> file, std::int64_t index,
               std::int64_t bytes)
      : file_(std::move(file)), reader_(*file_, index), left_(bytes) {
    swaps_ = take_header(reader_).is_big_endian();
  }

  void read(std::span<std::byte> bytes) override {
    reader_.read(bytes);
    left_ -= std::ssize(bytes);
    if (left_ == 0) reader_.finish();
  }

  bool swaps() const { return swaps_; }

 private:
  std::shared_ptr<const ZipFile> file_;
  ZipFile::Reader reader_;
  std::int64_t left_;
  bool swaps_ = false;
};

void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  for (std::size_t i = 0; i < bytes.size(); i += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
}

/// Of an array whose bytes lie otherwise: read whole, handed out in C order.
class Rearranged final : public ByteStream {
 public:
  Rearranged(ByteStream& from, const Tensor& tensor, bool fortran_order,
             bool swaps)
      : bytes_(read_whole<std::vector<std::byte>>(
            tensor.bytes(),
            [&](std::span<std::byte> bytes) { from.read(bytes); })) {
    const auto size = static_cast<std::size_t>(size_of(tensor.type));
    if (swaps) swap_bytes(bytes_, size);
    if (fortran_order) bytes_ = in_c_order(tensor.extents, size);
  }

  void read(std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), bytes_.data() + done_, bytes.size());
    done_ += bytes.size();
  }

 private:
  std::vector<std::byte> in_c_order(const std::vector<std::int64_t>& extents,
                                    std::size_t size) const {
    std::vector<std::byte> result(bytes_.size());
    std::vector<std::int64_t> index(extents.size(), 0);
    for (std::size_t to = 0; to < result.size(); to += size) {
      std::int64_t from = 0;
      for (std::size_t d = extents.size(); d-- > 0;)
        from = from * extents[d] + index[d];
      std::memcpy(result.data() + to,
                  bytes_.data() + static_cast<std::size_t>(from) * size, size);
      for (std::size_t d = extents.size(); d-- > 0;) {
        if (++index[d] < extents[d]) break;
        index[d] = 0;
      }
    }
    return result;
  }

  std::vector<std::byte> bytes_;
  std::size_t done_ = 0;
};

std::unique_ptr<ByteStream> open_member(
    const std::shared_ptr<const ZipFile>& file, std::int64_t index,
    const Tensor& tensor, bool fortran_order) {
  auto stream = std::make_unique<MemberStream>(file, index, tensor.bytes());
  if (!fortran_order && !stream->swaps()) return stream;
  return std::make_unique<Rearranged>(*stream, tensor, fortran_order,
                                      stream->swaps());
}

std::string text_of(ZipFile::Reader& reader, std::int64_t bytes) {
  std::string text = read_whole<std::string>(
      bytes, [&](std::span<std::byte> part) { reader.read(part); });
  reader.finish();
  return text;
}

/// Throws InvalidArgument for what is no tensor.
void read_array(const std::shared_ptr<const ZipFile>& file, std::int64_t index,
                const ZipFile::Member& member, Tensors& tensors) {
  if (!member.name.ends_with(suffix))
    throw InvalidArgument("it is no array of NumPy's (.npy)");
  Tensor tensor;
  tensor.name = member.name.substr(0, member.name.size() - suffix.size());
  ZipFile::Reader reader(*file, index);
  const NpyHeader header = take_header(reader);
  const std::int64_t count = detail::element_count(header.extents);
  if (tensor.name == manifest_name && header.type == byte_type &&
      header.extents.size() == 1 &&
      count <= std::min(member.bytes, longest_manifest)) {
    tensors.manifest = text_of(reader, count);
    return;
  }
  const auto type = type_of(header);
  if (!type)
    throw InvalidArgument(concat("it has the type ",
                                 detail::quoted(header.type),
                                 ", which no checkpoint has"));
  tensor.type = *type;
  tensor.extents = header.extents;
  if (count < 0 || tensor.bytes() > member.bytes)
    throw CheckpointError(
        concat(detail::quoted(tensor.name), " has less bytes than its shape ",
               std::span<const std::int64_t>(header.extents)));
  const bool fortran_order = header.fortran_order && header.extents.size() > 1;
  const Tensor shape = tensor;
  tensor.open = [file, index, shape, fortran_order] {
    return open_member(file, index, shape, fortran_order);
  };
  tensors.tensors.push_back(std::move(tensor));
}

void read_member(const std::shared_ptr<const ZipFile>& file, std::int64_t index,
                 OtherTypes other_types, Tensors& tensors) {
  const ZipFile::Member member = file->member(index);
  try {
    read_array(file, index, member, tensors);
  } catch (const InvalidArgument& error) {
    const std::string what =
        concat(detail::quoted(member.name), ": ", error.what());
    if (other_types == OtherTypes::refuse)
      throw CheckpointError(concat(what, " (--skip-other-types)"));
    tensors.passed_over.push_back(what);
  }
}

/// A header and then the elements, in parts of any size.
class NpyBytes {
 public:
  NpyBytes(const Tensor& tensor, const std::string& header)
      : left_(tensor.bytes()) {
    const auto bytes = std::as_bytes(std::span(header));
    ready_.assign(bytes.begin(), bytes.end());
    if (left_ > 0) stream_ = tensor.open();
  }

  void read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      if (taken_ == ready_.size()) refill();
      const std::size_t count = std::min(bytes.size(), ready_.size() - taken_);
      std::memcpy(bytes.data(), ready_.data() + taken_, count);
      taken_ += count;
      bytes = bytes.subspan(count);
    }
  }

 private:
  void refill() {
    ready_.resize(static_cast<std::size_t>(std::min(piece_bytes, left_)));
    stream_->read(ready_);
    left_ -= std::ssize(ready_);
    taken_ = 0;
  }

  std::vector<std::byte> ready_;
  std::size_t taken_ = 0;
  std::int64_t left_;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace

Tensors read_npz(const std::filesystem::path& path, OtherTypes other_types) {
  try {
    const auto file = std::make_shared<const ZipFile>(path);
    Tensors tensors;
    for (std::int64_t i = 0; i < file->size(); ++i)
      read_member(file, i, other_types, tensors);
    require_names_once(tensors.tensors);
    return tensors;
  } catch (const std::exception& error) {
    throw CheckpointError(concat("cannot read ", detail::quoted(path.string()),
                                 " as npz (", error.what(), ")"));
  }
}

void write_npz(const std::filesystem::path& path, const Tensors& from,
               const std::function<void(std::int64_t)>& progress) {
  require_names_once(from.tensors);
  NewZipFile file(path);
  for (const Tensor& each : from.tensors) {
    if (each.name == manifest_name)
      throw CheckpointError(
          concat("no array can have the name ", detail::quoted(each.name)));
    const Tensor tensor = each.type == TensorType::bfloat16
                              ? converted(each, TensorType::float32)
                              : each;
    const std::string header =
        npy_header(npy_type(tensor.type), tensor.extents);
    file.add(each.name + std::string(suffix),
             std::ssize(header) + tensor.bytes(), [tensor, header, progress] {
               return [from = std::make_shared<NpyBytes>(tensor, header),
                       progress](std::span<std::byte> bytes) {
                 from->read(bytes);
                 progress(std::ssize(bytes));
               };
             });
  }
  if (!from.manifest.empty()) {
    const std::int64_t extent = std::ssize(from.manifest);
    const std::string all =
        npy_header(byte_type, std::span(&extent, 1)) + from.manifest;
    file.add(concat(manifest_name, suffix), std::ssize(all), [all] {
      return [all, done = std::size_t{0}](std::span<std::byte> bytes) mutable {
        std::memcpy(bytes.data(), all.data() + done, bytes.size());
        done += bytes.size();
      };
    });
  }
  file.commit();
}

}  // namespace kzero::tools
