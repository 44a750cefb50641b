// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/hdf5_objects.hpp"

#include <vector>

namespace kzero::detail {

namespace {

constexpr unsigned remembered = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;

Handle utf8_link() {
  Handle list = own(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "H5Pcreate");
  check_hdf5(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8),
             "H5Pset_char_encoding");
  return list;
}

}  // namespace

Handle create_group(hid_t parent, const std::string& link) {
  const Handle list = own(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "H5Pcreate");
  check_hdf5(H5Pset_link_creation_order(list.get(), remembered),
             "H5Pset_link_creation_order");
  check_hdf5(H5Pset_attr_creation_order(list.get(), remembered),
             "H5Pset_attr_creation_order");
  // Equal content gives equal bytes: no times.
  check_hdf5(H5Pset_obj_track_times(list.get(), false),
             "H5Pset_obj_track_times");
  return own(H5Gcreate2(parent, link.c_str(), utf8_link().get(), list.get(),
                        H5P_DEFAULT),
             H5Gclose, "H5Gcreate");
}

Handle make_space(std::span<const std::int64_t> extents) {
  if (extents.empty()) return own(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate");
  const std::vector<hsize_t> sizes(extents.begin(), extents.end());
  return own(
      H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
      H5Sclose, "H5Screate_simple");
}

Handle create_dataset(hid_t parent, const std::string& link, hid_t type,
                      std::span<const std::int64_t> extents) {
  const Handle list = own(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate");
  check_hdf5(H5Pset_layout(list.get(), H5D_CONTIGUOUS), "H5Pset_layout");
  check_hdf5(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY),
             "H5Pset_alloc_time");
  // Strings of any length need a fill value: no string.
  if (check_hdf5(H5Tis_variable_str(type), "H5Tis_variable_str") == 0)
    check_hdf5(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER),
               "H5Pset_fill_time");
  check_hdf5(H5Pset_obj_track_times(list.get(), false),
             "H5Pset_obj_track_times");
#if H5_VERSION_GE(1, 10, 5)
  // No room for attributes, half of what would be written of a dataset; there
  // can be some all the same.
  check_hdf5(H5Pset_dset_no_attrs_hint(list.get(), true),
             "H5Pset_dset_no_attrs_hint");
#endif
  const Handle space = make_space(extents);
  return own(H5Dcreate2(parent, link.c_str(), type, space.get(),
                        utf8_link().get(), list.get(), H5P_DEFAULT),
             H5Dclose, "H5Dcreate");
}

std::int64_t place_of(hid_t dataset) {
  const haddr_t place = H5Dget_offset(dataset);
  return place == HADDR_UNDEF ? 0 : static_cast<std::int64_t>(place);
}

void write_dataset(hid_t dataset, hid_t type, const void* data) {
  check_hdf5(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
             "H5Dwrite");
}

}  // namespace kzero::detail
