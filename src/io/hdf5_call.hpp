// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Calls into HDF5: their errors become exceptions, their handles close
// themselves, and HDF5 prints nothing meanwhile.
#pragma once

#include <hdf5.h>

#include <concepts>
#include <string>
#include <utility>

#include "core/source_line.hpp"

namespace kzero::detail {

[[noreturn]] void throw_hdf5(const char* call, SourceLine where);

/// Returns code. Throws CheckpointError with HDF5's own text when it is
/// negative, which is how every HDF5 function fails.
template <std::signed_integral T>
T check_hdf5(T code, const char* call,
             SourceLine where = SourceLine::current()) {
  if (code < 0) throw_hdf5(call, where);
  return code;
}

/// Owns an HDF5 identifier.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
      close_ = other.close_;
    }
    return *this;
  }

  hid_t get() const { return id_; }

  void reset() noexcept {
    if (id_ >= 0) close_(std::exchange(id_, H5I_INVALID_HID));
  }

  /// Like reset, but gives what closing returned. The identifier is gone
  /// either way: after a failure HDF5 must not be asked again.
  herr_t close() noexcept {
    return id_ < 0 ? 0 : close_(std::exchange(id_, H5I_INVALID_HID));
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// The identifier that a call returned, checked.
inline Handle own(hid_t id, Handle::Close close, const char* call,
                  SourceLine where = SourceLine::current()) {
  return Handle(check_hdf5(id, call, where), close);
}

/// As long as it lives, HDF5 does not print its errors.
class SilentHdf5 {
 public:
  SilentHdf5();
  ~SilentHdf5();
  SilentHdf5(const SilentHdf5&) = delete;
  SilentHdf5& operator=(const SilentHdf5&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace kzero::detail
