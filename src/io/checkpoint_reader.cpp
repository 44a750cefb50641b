// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <kzero/error.hpp>
#include <set>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/link_name.hpp"
#include "io/user_data.hpp"

namespace kzero::detail {

namespace {

/// Calls f and puts the path into the message of what it throws.
template <class F>
void naming_path(const std::filesystem::path& path, F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    throw CheckpointError(concat("cannot load the checkpoint ",
                                 detail::quoted(path.string()), " (",
                                 error.what(), ")"));
  }
}

/// Opens it before HDF5 does, which hides the reasons of the system.
void require_readable(const std::filesystem::path& path) {
  if (path.empty())
    throw CheckpointError("the path names no file: give folder and name");
  errno = std::filesystem::is_directory(path) ? EISDIR : 0;
  if (errno == 0 && std::ifstream(path, std::ios::binary)) return;
  throw CheckpointError(error_text(errno) +
                        ": give a file that save_checkpoint has written");
}

Handle open_hdf5(const std::filesystem::path& path) {
  const htri_t known = H5Fis_hdf5(path.c_str());
  if (known == 0)
    throw CheckpointError(
        "it is not an HDF5 file: give one that save_checkpoint has written");
  const Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate");
  check_hdf5(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG),
             "H5Pset_fclose_degree");
#if H5_VERSION_GE(1, 12, 1) || \
    (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  // Files are replaced, never changed: a lock protects nothing, and some file
  // systems have none.
  check_hdf5(H5Pset_file_locking(access.get(), false, true),
             "H5Pset_file_locking");
#endif
  return own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose,
             "H5Fopen");
}

void require_kzero(hid_t root) {
  if (!has_attribute(root, "format") || read_text(root, "format") != "kzero")
    throw CheckpointError("it is an HDF5 file, but not one of kzero");
  const auto version = read_integers(root, "format_version");
  if (version.size() != 2)
    throw CheckpointError("the attribute \"format_version\" is not a pair");
  if (version[0] > format_major)
    throw CheckpointError(
        concat("it has the format version ", version[0], '.', version[1],
               ", this library reads versions up to ", format_major,
               ".x: load it with a newer kzero"));
  if (version[0] < 1)
    throw CheckpointError(
        concat("there is no format version ", version[0], '.', version[1]));
  if (read_integer(root, "complete") != 1)
    throw CheckpointError("it is incomplete: its writer was stopped");
}

GroupLayout read_group(hid_t place, const std::string& link) {
  GroupLayout group{name_of_link(link), read_text(place, "rule"), {}};
  for (const std::string& name : attribute_names(place))
    if (name != "name" && name != "rule")
      group.hyperparameters.emplace_back(name, read_number(place, name));
  return group;
}

DynamicScaler read_scaling(hid_t group) {
  DynamicScaler scaling;
  scaling.growth = read_number(group, "growth");
  scaling.backoff = read_number(group, "backoff");
  scaling.growth_interval = read_integer(group, "growth_interval");
  scaling.hysteresis = read_integer(group, "hysteresis");
  scaling.minimum = read_number(group, "minimum");
  return scaling;
}

std::optional<ScalerLayout> read_scaler(hid_t root) {
  if (!has_link(root, "scaler")) return std::nullopt;  // format 1.0
  try {
    const Handle place = open_group(root, "scaler");
    const hid_t group = place.get();
    ScalerLayout scaler{read_text(group, "kind"), {}};
    if (!is_kind(scaler.kind)) return scaler;
    scaler.state = {read_number(group, "scale"),
                    read_integer(group, "good_steps"),
                    read_integer(group, "hysteresis_left")};
    if (scaler.kind == kind_name(Scaler::Kind::dynamic) &&
        has_attribute(group, "growth"))
      scaler.scaling = read_scaling(group);
    return scaler;
  } catch (const CheckpointError& error) {
    throw CheckpointError(concat("in /scaler: ", error.what()));
  }
}

/// The extents and the type of one array.
std::vector<std::int64_t> read_array_layout(hid_t place,
                                            const ElementTypes& types,
                                            ArrayLayout& array) {
  const Handle dataset = open_dataset(place, array.name);
  const Handle type = own(H5Dget_type(dataset.get()), H5Tclose, "H5Dget_type");
  const std::optional<DType> dtype = types.find(type.get());
  if (!dtype.has_value())
    throw CheckpointError(concat("the array ", detail::quoted(array.name),
                                 " has a foreign number type"));
  array.dtype = *dtype;
  const Handle space =
      own(H5Dget_space(dataset.get()), H5Sclose, "H5Dget_space");
  return extents_of(space.get());
}

ParameterLayout read_parameter(hid_t place, const std::string& link,
                               const ElementTypes& types) {
  ParameterLayout parameter;
  parameter.name = name_of_link(link);
  parameter.group = read_text(place, "group");
  parameter.update_count = read_integer(place, "update_count");
  parameter.arrays.push_back({"value", DType::float32});
  for (const std::string& name : link_names(place))
    if (name != "value") parameter.arrays.push_back({name, DType::float32});
  for (ArrayLayout& array : parameter.arrays) {
    auto extents = read_array_layout(place, types, array);
    if (&array == &parameter.arrays.front())
      parameter.extents = std::move(extents);
    else if (extents != parameter.extents)
      throw CheckpointError(
          concat("the array ", detail::quoted(array.name), " has the shape ",
                 std::span<const std::int64_t>(extents), ", the value ",
                 std::span<const std::int64_t>(parameter.extents)));
  }
  return parameter;
}

/// Calls read(member, link) for every member of a group of the file.
template <class Read>
auto read_members(hid_t root, const std::string& group, Read&& read) {
  const Handle parent = open_group(root, group);
  std::vector<decltype(read(hid_t{}, std::string()))> layouts;
  std::set<std::string> names;
  for (const std::string& link : link_names(parent.get())) {
    try {
      if (!names.insert(name_of_link(link)).second)
        throw CheckpointError("two links have this name");
      const Handle place = open_group(parent.get(), link);
      layouts.push_back(read(place.get(), link));
    } catch (const CheckpointError& error) {
      throw CheckpointError(concat("in /", group, ", ",
                                   detail::quoted(name_of_link(link)), ": ",
                                   error.what()));
    }
  }
  return layouts;
}

}  // namespace

CheckpointReader::CheckpointReader(const std::filesystem::path& path,
                                   std::int64_t call_bytes)
    : path_(path), call_bytes_(call_bytes) {
  naming_path(path_, [&] {
    require_readable(path_);
    hdf5_ = open_hdf5(path_);
    require_kzero(hdf5_.get());
  });
}

FileLayout CheckpointReader::layout() const {
  FileLayout layout;
  naming_path(path_, [&] {
    const hid_t root = hdf5_.get();
    layout.content = {
        read_integer(root, "step"), read_integer(root, "world_size"),
        read_text(root, "library_version"), read_text(root, "created"),
        read_user_data(open_group(root, "user").get())};
    layout.skipped_total = read_integer(root, "skipped_total");
    layout.skipped_in_a_row = read_integer(root, "skipped_in_a_row");
    layout.groups = read_members(root, "optimizer", read_group);
    layout.scaler = read_scaler(root);
    layout.parameters = read_members(
        root, "parameters", [&](hid_t place, const std::string& link) {
          return read_parameter(place, link, types_);
        });
  });
  return layout;
}

void CheckpointReader::read(const ParameterLayout& parameter,
                            const ArrayLayout& array, void* data) const {
  naming_path(path_, [&] {
    try {
      const Handle place = open_group(
          hdf5_.get(), concat("parameters/", link_name(parameter.name)));
      const Handle dataset = open_dataset(place.get(), array.name);
      read_dataset(dataset.get(), {types_[array.dtype], parameter.extents},
                   data, call_bytes_);
    } catch (const CheckpointError& error) {
      throw CheckpointError(
          concat(detail::quoted(array.name), " of the parameter ",
                 detail::quoted(parameter.name), ": ", error.what()));
    }
  });
}

}  // namespace kzero::detail
