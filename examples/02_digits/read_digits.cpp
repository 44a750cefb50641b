// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <hdf5.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "data.hpp"

namespace digits {
namespace {

/// Closes what it holds; negative numbers stand for "could not be opened".
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  operator hid_t() const { return id_; }
  bool good() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// HDF5 prints its errors by default; ours say more.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

std::vector<hsize_t> extents_of(hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = space.good() ? H5Sget_simple_extent_ndims(space) : -1;
  if (rank < 0) return {};
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return extents;
}

/// Reads a dataset of small numbers, and checks its shape (0 stands for any
/// length) and its largest value.
std::vector<std::uint8_t> read(hid_t file, const std::string& path,
                               const char* name, std::vector<hsize_t> shape,
                               std::uint8_t largest) {
  const auto fail = [&](const std::string& problem) {
    throw std::runtime_error("data file " + path + ": " + problem + " \"" +
                             name + "\" (is it the digits.h5 of kzero?)");
  };
  const Handle dataset(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  if (!dataset.good()) fail("no dataset");

  const std::vector<hsize_t> extents = extents_of(dataset);
  const bool fits = std::equal(extents.begin(), extents.end(), shape.begin(),
                               shape.end(), [](hsize_t is, hsize_t expected) {
                                 return is == expected || expected == 0;
                               });
  // Bounded before it is believed: the file may be anything.
  if (!fits || extents[0] == 0 || extents[0] > 1'000'000)
    fail("unexpected shape of dataset");

  std::size_t size = 1;
  for (const hsize_t extent : extents) size *= extent;
  std::vector<std::uint8_t> values(size);
  if (H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT,
              values.data()) < 0) {
    fail("cannot read dataset");
  }
  if (std::any_of(values.begin(), values.end(),
                  [&](std::uint8_t value) { return value > largest; })) {
    fail("values above " + std::to_string(largest) + " in dataset");
  }
  return values;
}

}  // namespace

Digits read_digits(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) {
    throw std::runtime_error("data file " + path.string() +
                             " does not exist: name another with --data FILE");
  }
  const Quiet quiet;
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                    H5Fclose);
  if (!file.good()) {
    throw std::runtime_error("data file " + path.string() +
                             " cannot be opened as HDF5");
  }
  Digits digits;
  digits.labels = read(file, path.string(), "labels", {0}, class_count - 1);
  digits.images = read(file, path.string(), "images",
                       {digits.labels.size(), pixel_count}, 16);
  return digits;
}

}  // namespace digits
