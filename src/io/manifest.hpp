// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What stands in a checkpoint beside HDF5's own description of it, so that
// kzero has read and checked everything before anybody interprets it: a header
// at the very beginning, and a manifest, which says what the file holds, where,
// and with which checksums. docs/checkpoint_format.md describes both.
#pragma once

#include <string>
#include <string_view>

#include "io/stored_layout.hpp"

namespace kzero::detail {

/// What a manifest says it is.
inline constexpr std::string_view manifest_format = "kzero";

/// A manifest without its elements: its length depends on all but the
/// checksums.
std::string manifest_text(const StoredLayout& stored);

/// The reverse. User arrays have their extents, and no values yet. Throws
/// CheckpointError for what is no manifest, and for arrays that would not lie
/// in the file one beside another.
StoredLayout read_manifest(std::string_view text, const FileHeader& header);

}  // namespace kzero::detail
