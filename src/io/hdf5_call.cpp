// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/hdf5_call.hpp"

#include <kzero/error.hpp>
#include <string>
#include <string_view>

#include "core/message.hpp"

namespace kzero::detail {

namespace {

// HDF5 reports from the innermost function, which knows the reason, outwards.
extern "C" herr_t take_text(unsigned depth, const H5E_error2_t* entry,
                            void* text) {
  try {
    if (depth == 0 && entry->desc != nullptr)
      *static_cast<std::string*>(text) = entry->desc;
    return 0;
  } catch (...) {
    return -1;
  }
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

void throw_hdf5(const char* call, SourceLine where) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_text, &reason);
  if (reason.empty()) reason = "no reason given";
  throw CheckpointError(concat(call, " failed (", file_name(where.file), ":",
                               where.line, "): ", reason));
}

SilentHdf5::SilentHdf5() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

SilentHdf5::~SilentHdf5() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

}  // namespace kzero::detail
