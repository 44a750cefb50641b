// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <array>

#include "core/message.hpp"
#include "io/checkpoint_file.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/link_name.hpp"
#include "io/new_file_driver.hpp"
#include "io/user_data.hpp"

namespace kzero::detail {

namespace {

void write_root(hid_t root, const FileLayout& layout) {
  const CheckpointContent& content = layout.content;
  const std::array<std::int64_t, 2> version = {format_major, format_minor};
  write_attribute(root, "format", std::string_view("kzero"));
  write_attribute(root, "format_version",
                  std::span<const std::int64_t>(version));
  write_attribute(root, "complete", std::int64_t{0});
  write_attribute(root, "step", content.step);
  write_attribute(root, "skipped_total", layout.skipped_total);
  write_attribute(root, "skipped_in_a_row", layout.skipped_in_a_row);
  write_attribute(root, "world_size", content.world_size);
  write_attribute(root, "library_version",
                  std::string_view(content.library_version));
  write_attribute(root, "created", std::string_view(content.created));
}

void write_groups(hid_t root, const std::vector<GroupLayout>& groups) {
  const Handle optimizer = create_group(root, "optimizer");
  for (const GroupLayout& group : groups) {
    const Handle place = create_group(optimizer.get(), link_name(group.name));
    write_attribute(place.get(), "name", std::string_view(group.name));
    write_attribute(place.get(), "rule", std::string_view(group.rule));
    for (const auto& [name, value] : group.hyperparameters)
      write_attribute(place.get(), name, value);
  }
}

void write_scaler(hid_t root, const ScalerLayout& scaler) {
  const Handle place = create_group(root, "scaler");
  const hid_t group = place.get();
  write_attribute(group, "kind", std::string_view(scaler.kind));
  write_attribute(group, "scale", scaler.state.scale);
  write_attribute(group, "good_steps", scaler.state.good_steps);
  write_attribute(group, "hysteresis_left", scaler.state.hysteresis_left);
  if (!scaler.scaling) return;
  const DynamicScaler& scaling = *scaler.scaling;
  write_attribute(group, "growth", scaling.growth);
  write_attribute(group, "backoff", scaling.backoff);
  write_attribute(group, "growth_interval", scaling.growth_interval);
  write_attribute(group, "hysteresis", scaling.hysteresis);
  write_attribute(group, "minimum", scaling.minimum);
}

void create_parameter(hid_t parent, const ParameterLayout& parameter,
                      const ElementTypes& types) {
  const Handle place = create_group(parent, link_name(parameter.name));
  write_attribute(place.get(), "name", std::string_view(parameter.name));
  write_attribute(place.get(), "group", std::string_view(parameter.group));
  write_attribute(place.get(), "update_count", parameter.update_count);
  for (const ArrayLayout& array : parameter.arrays)
    create_dataset(place.get(), array.name, types[array.dtype],
                   parameter.extents);
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::filesystem::path& path,
                                   const FileLayout& layout,
                                   std::int64_t call_bytes)
    : file_(path),
      call_bytes_(call_bytes),
      driver_(register_new_file_driver()) {
  check_user_data(layout.content.user);
  hdf5_ = create_hdf5(file_, driver_.get());
  write_root(hdf5_.get(), layout);
  write_groups(hdf5_.get(), layout.groups);
  if (layout.scaler) write_scaler(hdf5_.get(), *layout.scaler);
  write_user_data(create_group(hdf5_.get(), "user").get(), layout.content.user);
  parameters_ = create_group(hdf5_.get(), "parameters");
  for (const ParameterLayout& parameter : layout.parameters)
    create_parameter(parameters_.get(), parameter, types_);

  // Everything has its place now: the size of the file is known.
  check_hdf5(H5Fflush(hdf5_.get(), H5F_SCOPE_GLOBAL), "H5Fflush");
  hsize_t bytes = 0;
  check_hdf5(H5Fget_filesize(hdf5_.get(), &bytes), "H5Fget_filesize");
  file_.reserve(static_cast<std::int64_t>(bytes));
  file_.check();
}

void CheckpointWriter::write(const ParameterLayout& parameter,
                             const ArrayLayout& array, const void* data) {
  const Handle place = open_group(parameters_.get(), link_name(parameter.name));
  const Handle dataset = open_dataset(place.get(), array.name);
  write_dataset(dataset.get(), {types_[array.dtype], parameter.extents}, data,
                call_bytes_);
  file_.check();
}

void CheckpointWriter::finish() {
  parameters_.reset();
  check_hdf5(H5Fflush(hdf5_.get(), H5F_SCOPE_GLOBAL), "H5Fflush");
  rewrite_attribute(hdf5_.get(), "complete", 1);
  check_hdf5(hdf5_.close(), "H5Fclose");
  file_.sync();
}

void CheckpointWriter::take_name() { file_.take_name(); }

}  // namespace kzero::detail
