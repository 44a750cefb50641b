// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/safetensors.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <kzero/error.hpp>
#include <memory>
#include <utility>

#include "core/message.hpp"
#include "io/element_count.hpp"
#include "io/json_node.hpp"
#include "io/new_file.hpp"
#include "io/open_file.hpp"

namespace kzero::tools {

namespace {

using detail::concat;
using detail::Json;
using detail::JsonNode;

constexpr std::string_view metadata_key = "__metadata__";
constexpr const char* manifest_key = "kzero_manifest";
/// The format's own limit.
constexpr std::int64_t longest_text = 100'000'000;
constexpr std::int64_t length_bytes = 8;

constexpr std::array<std::pair<std::string_view, TensorType>, 5> types = {
    {{"F16", TensorType::float16},
     {"BF16", TensorType::bfloat16},
     {"F32", TensorType::float32},
     {"F64", TensorType::float64},
     {"I64", TensorType::int64}}};

std::string_view name_of(TensorType type) {
  return std::ranges::find(types, type,
                           &std::pair<std::string_view, TensorType>::second)
      ->first;
}

struct Place {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Place place_of(const JsonNode& node) {
  const auto offsets = node.at("data_offsets").integers();
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0])
    throw InvalidArgument(
        concat(node.path(), "/data_offsets are no begin and end"));
  return {offsets[0], offsets[1]};
}

/// Throws where the bytes of one do not follow those of another.
void require_no_holes(std::vector<Place> places, std::int64_t data_bytes) {
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::pair(place.begin, place.end);
  });
  std::int64_t end = 0;
  for (const Place& place : places) {
    if (place.begin != end)
      throw InvalidArgument(concat("a tensor begins at byte ", place.begin,
                                   ", expected ", end,
                                   ", where the one before it ends"));
    end = place.end;
  }
  if (end != data_bytes)
    throw InvalidArgument(
        concat("the tensors have ", end, " bytes, the file has ", data_bytes));
}

class Part final : public ByteStream {
 public:
  Part(std::shared_ptr<const detail::OpenFile> file, std::string name,
       std::int64_t place)
      : file_(std::move(file)), name_(std::move(name)), place_(place) {}

  void read(std::span<std::byte> bytes) override {
    const auto outcome = file_->read(place_, bytes.data(), std::ssize(bytes));
    if (outcome.error != 0)
      throw CheckpointError(concat("reading of ", detail::quoted(name_),
                                   " stopped at byte ", outcome.place, ": ",
                                   detail::error_text(outcome.error)));
    place_ += std::ssize(bytes);
  }

 private:
  std::shared_ptr<const detail::OpenFile> file_;
  std::string name_;
  std::int64_t place_;
};

/// The text, and where the bytes behind it begin.
std::string text_of(const detail::OpenFile& file) {
  std::array<unsigned char, length_bytes> length{};
  if (file.read(0, length.data(), length_bytes).error != 0)
    throw InvalidArgument("it has less than 8 bytes");
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < length.size(); ++i)
    bytes |= std::uint64_t{length[i]} << (8 * i);
  const std::int64_t most = std::min(longest_text, file.size() - length_bytes);
  if (bytes > static_cast<std::uint64_t>(most))
    throw InvalidArgument(concat("its header would have ", bytes,
                                 " bytes, expected at most ", most));
  std::string text(bytes, '\0');
  if (file.read(length_bytes, text.data(), std::ssize(text)).error != 0)
    throw InvalidArgument("its header cannot be read");
  return text;
}

/// Each at a multiple of its element's size, as others expect who read them
/// where they lie.
std::vector<const Tensor*> in_file_order(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> order;
  for (const Tensor& tensor : tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, std::greater(), [](const Tensor* tensor) {
    return size_of(tensor->type);
  });
  return order;
}

std::string header_of(const Tensors& from) {
  Json json = Json::object();
  Json metadata = {{"format", "pt"}};
  if (!from.manifest.empty()) metadata[manifest_key] = from.manifest;
  json[std::string(metadata_key)] = std::move(metadata);
  std::int64_t begin = 0;
  for (const Tensor* const tensor : in_file_order(from.tensors)) {
    if (tensor->name == metadata_key)
      throw CheckpointError(
          concat("no tensor can have the name ", detail::quoted(tensor->name)));
    const std::int64_t end = begin + tensor->bytes();
    json[tensor->name] = {{"dtype", name_of(tensor->type)},
                          {"shape", tensor->extents},
                          {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::type_error&) {
    throw CheckpointError("a name is not UTF-8, and JSON has no other names");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (std::ssize(text) > longest_text)
    throw CheckpointError(concat("the header would have ", text.size(),
                                 " bytes, the format has ", longest_text,
                                 " at most"));
  return text;
}

}  // namespace

SafetensorsHeader parse_safetensors(std::string_view text,
                                    std::int64_t data_bytes,
                                    OtherTypes other_types) {
  const Json json = detail::parse_json(text);
  if (!json.is_object()) throw InvalidArgument("its header is no object");
  SafetensorsHeader header;
  std::vector<Place> places;
  for (const auto& [name, value] : json.items()) {
    const JsonNode node(value, name);
    if (name == metadata_key) {
      if (!value.is_object())
        throw InvalidArgument(concat(name, " is no object"));
      for (const auto& [key, each] : value.items())
        header.metadata[key] = JsonNode(each, key).text();
      continue;
    }
    const Place place = place_of(node);
    places.push_back(place);
    const std::string type = node.at("dtype").text();
    const auto known = std::ranges::find(
        types, type, &std::pair<std::string_view, TensorType>::first);
    const std::vector<std::int64_t> extents = node.at("shape").integers();
    const std::int64_t count = detail::element_count(extents);
    if (known == types.end()) {
      const std::string what =
          concat(detail::quoted(name), " has the type ", type);
      if (other_types == OtherTypes::refuse)
        throw InvalidArgument(
            concat(what, ", which no checkpoint has (--skip-other-types)"));
      header.passed_over.push_back(what);
      continue;
    }
    if (count < 0 || count * size_of(known->second) != place.end - place.begin)
      throw InvalidArgument(concat(name, " has ", place.end - place.begin,
                                   " bytes, which is not what its shape ",
                                   std::span<const std::int64_t>(extents),
                                   " has"));
    header.entries.push_back({name, known->second, extents, place.begin});
  }
  require_no_holes(std::move(places), data_bytes);
  std::ranges::stable_sort(header.entries, {}, &SafetensorsEntry::begin);
  return header;
}

Tensors read_safetensors(const std::filesystem::path& path,
                         OtherTypes other_types) {
  try {
    const auto file = std::make_shared<const detail::OpenFile>(path, O_RDONLY);
    if (!file->is_open()) throw InvalidArgument(detail::error_text(errno));
    const std::string text = text_of(*file);
    const std::int64_t behind = length_bytes + std::ssize(text);
    SafetensorsHeader header =
        parse_safetensors(text, file->size() - behind, other_types);
    Tensors tensors;
    tensors.manifest = std::move(header.metadata[manifest_key]);
    tensors.passed_over = std::move(header.passed_over);
    for (SafetensorsEntry& entry : header.entries)
      tensors.tensors.push_back(
          {std::move(entry.name), entry.type, std::move(entry.extents),
           [file, name = path.string(), place = behind + entry.begin] {
             return std::make_unique<Part>(file, name, place);
           }});
    return tensors;
  } catch (const std::exception& error) {
    throw CheckpointError(concat("cannot read ", detail::quoted(path.string()),
                                 " as safetensors (", error.what(), ")"));
  }
}

void write_safetensors(const std::filesystem::path& path, const Tensors& from,
                       const std::function<void(std::int64_t)>& progress) {
  require_names_once(from.tensors);
  const std::string text = header_of(from);
  std::int64_t place = length_bytes + std::ssize(text);
  std::int64_t bytes = place;
  for (const Tensor& tensor : from.tensors) bytes += tensor.bytes();
  detail::NewFile file(path);
  file.reserve(bytes);
  for (const Tensor* const tensor : in_file_order(from.tensors)) {
    for_each_piece(*tensor,
                   [&](std::int64_t first, std::span<const std::byte> piece) {
                     file.write(place + first, piece.data(), std::ssize(piece));
                     progress(std::ssize(piece));
                   });
    place += tensor->bytes();
  }
  std::array<unsigned char, length_bytes> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  file.write(length_bytes, text.data(), std::ssize(text));
  file.write(0, length.data(), length_bytes);
  file.finish(detail::Durable::yes);
  file.take_name(detail::Durable::yes);
}

}  // namespace kzero::tools
