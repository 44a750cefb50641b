// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/image_driver.hpp"

#include "io/manifest.hpp"

#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <functional>
#include <iterator>
#include <new>

namespace kzero::detail {

namespace {

constexpr haddr_t largest_address = (haddr_t{1} << 62) - 1;

// HDF5's part must come first: it is what HDF5 passes around.
struct Stream {
  H5FD_t base;
  FileImage* image;
  haddr_t end_of_allocation;
};

// In the access property list, which copies it byte by byte.
struct Target {
  FileImage* image;
};

Stream& stream_of(H5FD_t* base) { return *reinterpret_cast<Stream*>(base); }
const Stream& stream_of(const H5FD_t* base) {
  return *reinterpret_cast<const Stream*>(base);
}

extern "C" {

static H5FD_t* stream_open(const char*, unsigned, hid_t access, haddr_t) {
  const auto* target = static_cast<const Target*>(H5Pget_driver_info(access));
  if (target == nullptr) return nullptr;
  auto* stream = new (std::nothrow) Stream{};
  if (stream == nullptr) return nullptr;
  stream->image = target->image;
  return &stream->base;
}

static herr_t stream_close(H5FD_t* base) {
  delete &stream_of(base);
  return 0;
}

static int stream_compare(const H5FD_t* a, const H5FD_t* b) {
  const std::less<const FileImage*> less;
  const FileImage* first = stream_of(a).image;
  const FileImage* second = stream_of(b).image;
  return less(first, second) ? -1 : less(second, first) ? 1 : 0;
}

static herr_t stream_query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

static haddr_t stream_end_of_allocation(const H5FD_t* base, H5FD_mem_t) {
  return stream_of(base).end_of_allocation;
}

static herr_t stream_allocate(H5FD_t* base, H5FD_mem_t, haddr_t end) {
  stream_of(base).end_of_allocation = end;
  return 0;
}

static haddr_t stream_end_of_file(const H5FD_t* base, H5FD_mem_t) {
  return static_cast<haddr_t>(stream_of(base).image->size());
}

static herr_t stream_read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t place,
                          size_t bytes, void* data) {
  stream_of(base).image->read(static_cast<std::int64_t>(place), data, bytes);
  return 0;
}

static herr_t stream_write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t place,
                           size_t bytes, const void* data) {
  stream_of(base).image->write(static_cast<std::int64_t>(place), data, bytes);
  return 0;
}

static herr_t stream_truncate(H5FD_t* base, hid_t, hbool_t) {
  Stream& stream = stream_of(base);
  const auto end = static_cast<std::int64_t>(stream.end_of_allocation);
  if (stream.image->size() != end) stream.image->resize(end);
  return 0;
}

}  // extern "C"

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#if defined(H5FD_CLASS_VERSION)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(600);  // of nobody else's here
#endif
  driver.name = "kzero";
  driver.maxaddr = largest_address;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Target);
  driver.open = stream_open;
  driver.close = stream_close;
  driver.cmp = stream_compare;
  driver.query = stream_query;
  driver.get_eoa = stream_end_of_allocation;
  driver.set_eoa = stream_allocate;
  driver.get_eof = stream_end_of_file;
  driver.read = stream_read;
  driver.write = stream_write;
  driver.truncate = stream_truncate;
  const H5FD_mem_t two_kinds[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(two_kinds), std::end(two_kinds),
            std::begin(driver.fl_map));
  return driver;
}

}  // namespace

Handle register_image_driver() {
  const H5FD_class_t driver = driver_class();
  return own(H5FDregister(&driver), H5FDunregister, "H5FDregister");
}

namespace {

// Elements begin where pages do, as far as that costs little.
constexpr hsize_t large = hsize_t{64} << 10;
constexpr hsize_t page = 4096;

/// Descriptions lie apart from elements, in few stretches. Of an object HDF5
/// writes some 500 bytes at most.
hsize_t block_bytes(std::size_t objects) {
  constexpr hsize_t smallest = 4096;
  constexpr hsize_t largest = hsize_t{1} << 20;
  constexpr hsize_t each = 512;
  return std::clamp(each * static_cast<hsize_t>(objects), smallest, largest);
}

Handle access_list(FileImage& image, hid_t driver, std::size_t objects) {
  Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate");
  const Target target{&image};
  check_hdf5(H5Pset_driver(access.get(), driver, &target), "H5Pset_driver");
  check_hdf5(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG),
             "H5Pset_fclose_degree");
  check_hdf5(H5Pset_alignment(access.get(), large, page), "H5Pset_alignment");
  const hsize_t block = block_bytes(objects);
  check_hdf5(H5Pset_meta_block_size(access.get(), block),
             "H5Pset_meta_block_size");
  // Small arrays are neighbours of large ones.
  check_hdf5(H5Pset_small_data_block_size(access.get(), 0),
             "H5Pset_small_data_block_size");
  return access;
}

}  // namespace

// The driver asks for no name.
constexpr const char* no_name = "kzero";

Handle create_hdf5(FileImage& image, hid_t driver, std::size_t objects) {
  const Handle creation =
      own(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "H5Pcreate");
  check_hdf5(H5Pset_userblock(creation.get(), header_bytes),
             "H5Pset_userblock");
  return own(H5Fcreate(no_name, H5F_ACC_TRUNC, creation.get(),
                       access_list(image, driver, objects).get()),
             H5Fclose, "H5Fcreate");
}

Handle open_hdf5(FileImage& image, hid_t driver, std::size_t objects) {
  return own(
      H5Fopen(no_name, H5F_ACC_RDWR, access_list(image, driver, objects).get()),
      H5Fclose, "H5Fopen");
}

}  // namespace kzero::detail
