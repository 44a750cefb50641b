// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "io/hdf5_view.hpp"

#include <algorithm>
#include <array>
#include <kzero/error.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "core/hash.hpp"
#include "io/checksum.hpp"
#include "io/element_types.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/hdf5_objects.hpp"
#include "io/image_driver.hpp"
#include "io/link_name.hpp"
#include "io/user_data.hpp"

namespace kzero::detail {

namespace {

/// The part of a file that is the same in every save of one model.
struct ParametersView {
  std::uint64_t hash = 0;  // of what it depends on
  FileImage image;
  ByArray<StoredArray> arrays;
};

void require_memory(const FileImage& image) {
  if (image.has_failed())
    throw CheckpointError("there is no memory for the description of the file");
}

std::uint64_t hash_of(const FileLayout& layout) {
  std::uint64_t value = 0;
  for (const ParameterLayout& parameter : layout.parameters) {
    value = hash(parameter.name, hash(parameter.group, value));
    value = hash(parameter.extents.data(),
                 parameter.extents.size() * sizeof(std::int64_t), value);
    for (const ArrayLayout& array : parameter.arrays) {
      value = hash(array.name, value);
      value = hash(&array.dtype, sizeof array.dtype, value);
    }
    const std::size_t counts[] = {parameter.extents.size(),
                                  parameter.arrays.size()};
    value = hash(counts, sizeof counts, value);
  }
  return value;
}

std::vector<Handle> create_parameters(hid_t root, const FileLayout& layout) {
  const Handle parent = create_group(root, "parameters");
  std::vector<Handle> groups;
  for (const ParameterLayout& parameter : layout.parameters) {
    groups.push_back(create_group(parent.get(), link_name(parameter.name)));
    write_attribute(groups.back().get(), "name",
                    std::string_view(parameter.name));
    write_attribute(groups.back().get(), "group",
                    std::string_view(parameter.group));
  }
  return groups;
}

/// In the order in which arrays lie in the file: values first, then the first
/// state array, and so on; of those each type by itself; and of these the last
/// declared first. So neighbours in a bucket are neighbours in the file.
std::vector<ArrayIndex> order_in_file(const FileLayout& layout) {
  std::vector<ArrayIndex> order;
  for (std::size_t i = layout.parameters.size(); i-- > 0;)
    for (std::size_t k = 0; k < layout.parameters[i].arrays.size(); ++k)
      order.push_back({i, k});
  std::ranges::stable_sort(order, {}, [&](ArrayIndex index) {
    const auto& arrays = layout.parameters[index.parameter].arrays;
    return std::pair(index.array, arrays.front().dtype);
  });
  return order;
}

std::shared_ptr<const ParametersView> make_parameters_view(
    const FileLayout& layout, hid_t driver, std::uint64_t hash_of_layout) {
  auto view = std::make_shared<ParametersView>();
  view->hash = hash_of_layout;
  for (const ParameterLayout& parameter : layout.parameters)
    view->arrays.add(parameter.arrays.size());
  {
    const ElementTypes types;
    const std::vector<ArrayIndex> order = order_in_file(layout);
    const Handle file = create_hdf5(view->image, driver, order.size());
    const std::vector<Handle> groups = create_parameters(file.get(), layout);
    for (const ArrayIndex index : order) {
      const ParameterLayout& parameter = layout.parameters[index.parameter];
      const ArrayLayout& array = parameter.arrays[index.array];
      const Handle dataset =
          create_dataset(groups[index.parameter].get(), link_name(array.name),
                         types[array.dtype], parameter.extents);
      view->arrays[index].place = place_of(dataset.get());
    }
  }
  require_memory(view->image);
  // HDF5 keeps what it has freed for objects to come. Scattered as that is
  // between all else, it makes every later allocation slow.
  static_cast<void>(H5garbage_collect());
  return view;
}

/// Made anew, or the last one.
std::shared_ptr<const ParametersView> parameters_view(const FileLayout& layout,
                                                      hid_t driver) {
  static std::mutex mutex;
  static auto& last = *new std::shared_ptr<const ParametersView>();
  const std::uint64_t wanted = hash_of(layout);
  const std::lock_guard lock(mutex);
  if (!last || last->hash != wanted)
    last = make_parameters_view(layout, driver, wanted);
  return last;
}

void write_root(hid_t root, const FileLayout& layout) {
  const CheckpointContent& content = layout.content;
  const std::array<std::int64_t, 2> version = {format_major, format_minor};
  write_attribute(root, "format", std::string_view("kzero"));
  write_attribute(root, "format_version",
                  std::span<const std::int64_t>(version));
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

void write_update_counts(hid_t root, const FileLayout& layout) {
  std::vector<std::int64_t> counts;
  for (const ParameterLayout& parameter : layout.parameters)
    counts.push_back(parameter.update_count);
  const std::int64_t extent = std::ssize(counts);
  const Handle dataset =
      create_dataset(root, "update_counts", H5T_STD_I64LE, {&extent, 1});
  if (!counts.empty())
    write_dataset(dataset.get(), H5T_STD_I64LE, counts.data());
}

void take_user_places(const UserData& user,
                      const std::map<std::string, std::int64_t>& places,
                      StoredLayout& stored) {
  for (const auto& [name, place] : places) {
    const std::uint64_t sum = std::visit(
        []<class T>(const T& value) -> std::uint64_t {
          if constexpr (requires { value.values; })
            return checksum(0, value.values.data(),
                            static_cast<std::int64_t>(value.values.size() *
                                                      sizeof value.values[0]));
          else
            return 0;
        },
        user.at(name));
    stored.user[name] = {place, sum};
  }
}

}  // namespace

Hdf5View make_hdf5_view(FileLayout layout) {
  check_user_data(layout.content.user);
  const SilentHdf5 silence;
  const Handle driver = register_image_driver();
  const auto parameters = parameters_view(layout, driver.get());
  FileImage image = parameters->image;
  StoredLayout stored{std::move(layout), parameters->arrays, {}};
  const auto add_rest = [&] {
    const Handle file = open_hdf5(image, driver.get(), 0);
    const hid_t root = file.get();
    write_root(root, stored.layout);
    write_groups(root, stored.layout.groups);
    if (stored.layout.scaler) write_scaler(root, *stored.layout.scaler);
    write_update_counts(root, stored.layout);
    const UserData& user = stored.layout.content.user;
    take_user_places(
        user, write_user_data(create_group(root, "user").get(), user), stored);
    Manifest manifest(stored);
    const std::int64_t bytes = std::ssize(manifest.text());
    const Handle dataset =
        create_dataset(root, "manifest", H5T_STD_U8LE, {&bytes, 1});
    return std::pair(std::move(manifest), place_of(dataset.get()));
  };
  auto [manifest, place] = add_rest();
  require_memory(image);
  return {std::move(image), std::move(stored), std::move(manifest), place};
}

}  // namespace kzero::detail
