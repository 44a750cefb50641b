// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Groups, scaler and versions as JSON, in the state of an optimizer and in the
// manifest of a checkpoint.
#pragma once

#include "io/file_layout.hpp"
#include "io/json_node.hpp"

namespace kzero::detail {

/// An object of groups by name.
Json json_of(const std::vector<GroupLayout>& groups);
/// Throws InvalidArgument for what is none. So do the others.
std::vector<GroupLayout> groups_of(const JsonNode& node);

Json json_of(const ScalerLayout& scaler);
/// Of a kind that is_kind() does not know, the kind alone.
ScalerLayout scaler_of(const JsonNode& node);

/// Of a text that state_json() has written for this model; what it does not say
/// of the parameters is as in the model. Throws InvalidArgument.
FileLayout layout_of_state(std::string_view text, const FileLayout& model);

/// Throws InvalidArgument when a text has another format, or a major version
/// that this library does not read.
void require_format(const JsonNode& root, std::string_view format,
                    std::int64_t major);

}  // namespace kzero::detail
