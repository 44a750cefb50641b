// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What of a file goes into a model: decided before anything is loaded.
#pragma once

#include <kzero/checkpoint.hpp>
#include <string>
#include <vector>

#include "io/by_array.hpp"
#include "io/file_layout.hpp"

namespace kzero::detail {

/// Where the elements of an array come from.
/// file: the array of the same name. file_value, file_main: that array of the
/// parameter. value: the model's value when that is loaded, widened.
enum class ElementSource { file, file_value, file_main, value, zeros };

struct ElementOrigin {
  ElementSource source = ElementSource::zeros;
  /// In the file, of what comes from there: converted where it is another one.
  DType dtype = DType::float32;

  bool is_in_file() const { return source <= ElementSource::file_main; }
};

/// The array of the file that one of the model's comes from.
ArrayLayout array_in_file(const ArrayLayout& array,
                          const ElementOrigin& origin);

/// As in the model's layout; none of a parameter that stays as it is.
using ElementOrigins = ByArray<ElementOrigin>;

struct ParameterMatch {
  /// Null: the parameter stays as it is.
  const ParameterLayout* in_file = nullptr;
  /// State and update count start anew.
  bool anew = false;
  std::vector<ElementOrigin> origins;  // by array of the model
};

/// Points into the layouts that were matched.
struct LayoutMatch {
  std::vector<ParameterMatch> parameters;  // as in the model's layout
  /// As in the model's layout. Null: the program's hyperparameters stay.
  std::vector<const GroupLayout*> groups;
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  std::vector<std::string> misshaped;
};

/// What the messages call the source, and whether they name LoadOptions.
enum class Medium { file, text, state };

/// Throws CheckpointError, naming what is missing, not expected or different,
/// for what the options do not allow; strict: unless the file has exactly the
/// model's parameters, groups, rules and arrays, with the same shapes and
/// types. Names that are tied in the model are no difference. Local.
LayoutMatch match_layouts(const FileLayout& model, const FileLayout& file,
                          const LoadOptions& options,
                          Medium medium = Medium::file);

}  // namespace kzero::detail
