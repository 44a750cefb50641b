// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Files in the format safetensors: the length of a JSON text, the text, and
// the bytes of the tensors, without holes
// (https://github.com/huggingface/safetensors).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tensors.hpp"

namespace kzero::tools {

/// Where a tensor lies among the bytes behind the text.
struct SafetensorsEntry {
  std::string name;
  TensorType type = TensorType::float32;
  std::vector<std::int64_t> extents;
  std::int64_t begin = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::vector<std::string> passed_over;
};

/// Throws InvalidArgument for a text that is not valid, or does not cover
/// exactly data_bytes.
SafetensorsHeader parse_safetensors(std::string_view text,
                                    std::int64_t data_bytes,
                                    OtherTypes other_types);

/// Throws CheckpointError.
Tensors read_safetensors(const std::filesystem::path& path,
                         OtherTypes other_types);

/// Calls progress(bytes) as they are written. Throws CheckpointError; what
/// stood at path is untouched then.
void write_safetensors(const std::filesystem::path& path, const Tensors& from,
                       const std::function<void(std::int64_t)>& progress);

}  // namespace kzero::tools
