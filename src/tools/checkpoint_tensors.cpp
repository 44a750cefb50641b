// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/checkpoint_tensors.hpp"

#include <cstring>
#include <kzero/error.hpp>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checksum.hpp"
#include "io/file_layout.hpp"
#include "io/manifest.hpp"

namespace kzero::tools {

namespace {

using detail::ArrayIndex;
using detail::CheckpointReader;
using detail::CheckpointWriter;
using detail::concat;

constexpr std::size_t most_extents = 8;

class ArrayStream final : public ByteStream {
 public:
  ArrayStream(std::shared_ptr<const CheckpointReader> reader, ArrayIndex index,
              std::int64_t bytes)
      : reader_(std::move(reader)), index_(index), bytes_(bytes) {}

  void read(std::span<std::byte> bytes) override {
    reader_->read_part(index_, done_, bytes);
    sum_ += detail::checksum(done_, bytes.data(), std::ssize(bytes));
    done_ += std::ssize(bytes);
    if (done_ == bytes_) reader_->check(index_, sum_);
  }

 private:
  std::shared_ptr<const CheckpointReader> reader_;
  ArrayIndex index_;
  std::int64_t bytes_;
  std::int64_t done_ = 0;
  std::uint64_t sum_ = 0;
};

/// Of an array of the caller's, which the reader has.
class UserStream final : public ByteStream {
 public:
  UserStream(std::shared_ptr<const CheckpointReader> reader,
             std::span<const std::byte> bytes)
      : reader_(std::move(reader)), rest_(bytes) {}

  void read(std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), rest_.data(), bytes.size());
    rest_ = rest_.subspan(bytes.size());
  }

 private:
  std::shared_ptr<const CheckpointReader> reader_;
  std::span<const std::byte> rest_;
};

template <class T>
constexpr TensorType user_type =
    std::is_same_v<T, float>    ? TensorType::float32
    : std::is_same_v<T, double> ? TensorType::float64
                                : TensorType::int64;

std::string user_name(const std::string& name) { return "user/" + name; }

std::string array_name(const detail::ParameterLayout& parameter,
                       std::size_t array) {
  return array == 0 ? parameter.name
                    : concat(parameter.name, "/", parameter.arrays[array].name);
}

void add_user_arrays(const std::shared_ptr<const CheckpointReader>& reader,
                     Tensors& tensors) {
  for (const auto& entry : reader->layout().content.user)
    std::visit(
        [&]<class T>(const T& value) {
          if constexpr (requires { value.extents; })
            tensors.tensors.push_back(
                {user_name(entry.first),
                 user_type<std::remove_cvref_t<decltype(value.values[0])>>,
                 value.extents,
                 [reader, bytes = std::as_bytes(std::span(value.values))] {
                   return std::make_unique<UserStream>(reader, bytes);
                 }});
        },
        entry.second);
}

/// The array of a parameter that stands for it.
std::size_t representative(const detail::ParameterLayout& parameter,
                           Content content) {
  if (content == Content::main)
    for (std::size_t k = 0; k < parameter.arrays.size(); ++k)
      if (parameter.arrays[k].name == "main") return k;
  return 0;
}

/// The layout of a checkpoint that has these parameters and nothing else.
detail::FileLayout layout_of(const std::vector<Tensor>& tensors) {
  detail::FileLayout layout;
  layout.content = detail::content_now(0, 1);
  for (const Tensor& tensor : tensors) {
    const auto dtype = parameter_dtype(tensor.type);
    if (!dtype)
      throw CheckpointError(concat(
          detail::quoted(tensor.name), " has the type ", to_string(tensor.type),
          ", which no parameter has (--skip-other-types)"));
    layout.parameters.push_back(
        {tensor.name, "default", 0, tensor.extents, {{"value", *dtype}}});
  }
  return layout;
}

/// The manifest's, apart from where the arrays lie in its own file.
detail::FileLayout layout_of(const std::string& manifest) {
  detail::FileHeader anywhere;
  anywhere.file_bytes = std::numeric_limits<std::int64_t>::max();
  anywhere.manifest_place = anywhere.file_bytes;
  return detail::read_manifest(manifest, anywhere).layout;
}

/// Tensors by name; each can be taken once.
class Supply {
 public:
  explicit Supply(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) tensors_[tensor.name] = &tensor;
  }

  Tensor take(const std::string& name, TensorType type,
              const std::vector<std::int64_t>& extents) {
    const auto place = tensors_.find(name);
    if (place == tensors_.end())
      throw CheckpointError(concat("there is no array ", detail::quoted(name),
                                   ", which its kzero manifest names"));
    const Tensor& tensor = *place->second;
    tensors_.erase(place);
    if (tensor.extents != extents)
      throw CheckpointError(
          concat("the array ", detail::quoted(name), " has the shape ",
                 std::span<const std::int64_t>(tensor.extents),
                 ", its kzero manifest says ",
                 std::span<const std::int64_t>(extents)));
    return converted(tensor, type);
  }

  void require_empty() const {
    if (!tensors_.empty())
      throw CheckpointError(concat("its kzero manifest does not know ",
                                   detail::quoted(tensors_.begin()->first),
                                   ", and ", tensors_.size() - 1,
                                   " others: leave it out (--without-state)"));
  }

 private:
  std::unordered_map<std::string, const Tensor*> tensors_;
};

/// Fills the arrays of a layout's user data.
void take_user_arrays(detail::FileLayout& layout, Supply& supply) {
  for (auto& entry : layout.content.user)
    std::visit(
        [&]<class T>(T& value) {
          if constexpr (requires { value.extents; }) {
            const Tensor tensor = supply.take(
                user_name(entry.first),
                user_type<std::remove_cvref_t<decltype(value.values[0])>>,
                value.extents);
            value.values.resize(static_cast<std::size_t>(tensor.bytes()) /
                                sizeof value.values[0]);
            if (tensor.bytes() > 0)
              tensor.open()->read(
                  std::as_writable_bytes(std::span(value.values)));
          }
        },
        entry.second);
}

void require_parameters(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.name.empty()) throw CheckpointError("an array has no name");
    if (tensor.extents.size() > most_extents)
      throw CheckpointError(
          concat(detail::quoted(tensor.name), " has ", tensor.extents.size(),
                 " extents, a parameter has ", most_extents, " at most"));
  }
}

}  // namespace

Tensors read_checkpoint(const std::filesystem::path& path, Content content) {
  const auto reader = std::make_shared<const CheckpointReader>(path);
  Tensors tensors;
  const auto add = [&](ArrayIndex index, std::string name) {
    const auto& parameter = reader->layout().parameters[index.parameter];
    const DType dtype = parameter.arrays[index.array].dtype;
    tensors.tensors.push_back(
        {std::move(name), type_of(dtype), parameter.extents,
         [reader, index, bytes = detail::array_bytes(parameter, dtype)] {
           return std::make_unique<ArrayStream>(reader, index, bytes);
         }});
  };
  const auto& parameters = reader->layout().parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters[i];
    if (content != Content::all)
      add({i, representative(parameter, content)}, parameter.name);
    else
      for (std::size_t k = 0; k < parameter.arrays.size(); ++k)
        add({i, k}, array_name(parameter, k));
  }
  if (content == Content::all) {
    tensors.manifest = detail::Manifest(reader->stored()).text();
    add_user_arrays(reader, tensors);
  }
  return tensors;
}

void write_checkpoint(const std::filesystem::path& path, const Tensors& from,
                      const std::function<void(std::int64_t)>& progress) {
  require_names_once(from.tensors);
  Supply supply(from.tensors);
  detail::FileLayout layout;
  if (from.manifest.empty()) {
    require_parameters(from.tensors);
    layout = layout_of(from.tensors);
  } else {
    layout = layout_of(from.manifest);
    take_user_arrays(layout, supply);
  }
  // In the order of the file that is read.
  std::unordered_map<std::string, Tensor> sources;
  for (const auto& parameter : layout.parameters)
    for (std::size_t k = 0; k < parameter.arrays.size(); ++k)
      sources[array_name(parameter, k)] =
          supply.take(array_name(parameter, k),
                      type_of(parameter.arrays[k].dtype), parameter.extents);
  supply.require_empty();
  CheckpointWriter writer(path, layout);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i)
    for (std::size_t k = 0; k < layout.parameters[i].arrays.size(); ++k)
      for_each_piece(sources.at(array_name(layout.parameters[i], k)),
                     [&](std::int64_t first, std::span<const std::byte> bytes) {
                       writer.write_part({i, k}, first, bytes);
                       progress(std::ssize(bytes));
                     });
  writer.finish();
  writer.take_name();
}

}  // namespace kzero::tools
