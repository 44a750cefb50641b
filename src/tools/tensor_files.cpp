// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/tensor_files.hpp"

#include <CLI/CLI.hpp>

#include "tools/npz.hpp"
#include "tools/safetensors.hpp"

namespace kzero::tools {

Format format_of(const std::filesystem::path& path,
                 std::optional<Format> said) {
  if (said) return *said;
  const std::string extension = CLI::detail::to_lower(path.extension());
  if (extension == ".safetensors") return Format::safetensors;
  if (extension == ".npz") return Format::npz;
  return Format::checkpoint;
}

Tensors read_tensors(const std::filesystem::path& path, Content content,
                     OtherTypes other_types, std::optional<Format> format) {
  switch (format_of(path, format)) {
    case Format::safetensors:
      return read_safetensors(path, other_types);
    case Format::npz:
      return read_npz(path, other_types);
    case Format::checkpoint:
      break;
  }
  return read_checkpoint(path, content);
}

void write_tensors(const std::filesystem::path& path, Format format,
                   const Tensors& tensors,
                   const std::function<void(std::int64_t)>& progress) {
  switch (format) {
    case Format::safetensors:
      return write_safetensors(path, tensors, progress);
    case Format::npz:
      return write_npz(path, tensors, progress);
    case Format::checkpoint:
      return write_checkpoint(path, tensors, progress);
  }
}

}  // namespace kzero::tools
