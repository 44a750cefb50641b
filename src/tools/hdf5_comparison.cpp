// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "tools/hdf5_comparison.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <set>
#include <utility>

#include "core/message.hpp"
#include "io/element_count.hpp"
#include "io/element_types.hpp"
#include "io/hdf5_call.hpp"
#include "io/hdf5_objects.hpp"
#include "io/link_name.hpp"

namespace kzero::tools {

namespace {

using detail::check_hdf5;
using detail::concat;
using detail::Handle;
using detail::own;

/// File systems of clusters often have no locks; this process only reads.
Handle without_lock() {
  Handle access = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate");
#if H5_VERSION_GE(1, 10, 7)
  check_hdf5(H5Pset_file_locking(access.get(), false, true),
             "H5Pset_file_locking");
#endif
  return access;
}

/// An array as the manifest has it.
struct Expected {
  hid_t type = H5I_INVALID_HID;
  std::vector<std::int64_t> extents;
  std::int64_t place = 0;
};

class Comparison {
 public:
  Comparison(const std::filesystem::path& path,
             const detail::StoredLayout& stored,
             const detail::FileHeader& header)
      : file_(own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, without_lock().get()),
                  H5Fclose, "H5Fopen")),
        stored_(stored),
        header_(header) {}

  std::vector<std::string> run() {
    const detail::FileLayout& layout = stored_.layout;
    std::vector<std::string> members = {"manifest", "optimizer", "parameters",
                                        "update_counts", "user"};
    if (layout.scaler) members.emplace_back("scaler");
    const hid_t root = file_.get();
    if (!compare_links(root, "/", std::move(members)))
      return std::move(problems_);
    compare_number(root, "/", "step", layout.content.step);
    compare_array(
        root, "/manifest",
        {H5T_STD_U8LE, {header_.manifest_bytes}, header_.manifest_place});
    compare_counts(root);
    compare_parameters(root);
    compare_groups(root);
    compare_user(root);
    return std::move(problems_);
  }

 private:
  void say(std::string problem) {
    constexpr std::size_t most = 100;
    if (problems_.size() < most)
      problems_.push_back("HDF5's part: " + std::move(problem));
  }

  /// Whether a group has these links, all of which must lead to objects of
  /// their own.
  bool compare_links(hid_t parent, const std::string& path,
                     std::vector<std::string> expected) {
    const Handle group =
        own(H5Gopen2(parent, path.c_str(), H5P_DEFAULT), H5Gclose, "H5Gopen");
    std::vector<std::pair<std::string, bool>> found;  // and whether hard
    check_hdf5(H5Literate(
                   group.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
                   [](hid_t, const char* name, const H5L_info_t* info,
                      void* list) -> herr_t {
                     try {
                       static_cast<decltype(found)*>(list)->emplace_back(
                           name, info->type == H5L_TYPE_HARD);
                       return 0;
                     } catch (const std::exception&) {
                       return -1;
                     }
                   },
                   &found),
               "H5Literate");
    const std::size_t before = problems_.size();
    std::set<std::string> missing(expected.begin(), expected.end());
    for (const auto& each : found) {
      const std::string name = join(path, each.first);
      if (!each.second) say(name + " is a link to somewhere else");
      if (missing.erase(each.first) == 0)
        say(name + " is there, and not in the manifest");
    }
    for (const std::string& each : missing)
      say(join(path, each) + " is missing");
    return problems_.size() == before;
  }

  static std::string join(const std::string& path, const std::string& link) {
    return path.back() == '/' ? path + link : concat(path, "/", link);
  }

  void compare_array(hid_t root, const std::string& path,
                     const Expected& expected) {
    const Handle dataset =
        Handle(H5Dopen2(root, path.c_str(), H5P_DEFAULT), H5Dclose);
    if (dataset.get() < 0) return say(path + " is no dataset");
    const Handle type =
        own(H5Dget_type(dataset.get()), H5Tclose, "H5Dget_type");
    if (check_hdf5(H5Tequal(type.get(), expected.type), "H5Tequal") == 0)
      say(path + " has another type");
    if (extents_of(dataset.get()) != expected.extents)
      return say(path + " has another shape");
    const Handle list = own(H5Dget_create_plist(dataset.get()), H5Pclose,
                            "H5Dget_create_plist");
    if (H5Pget_layout(list.get()) != H5D_CONTIGUOUS ||
        H5Pget_external_count(list.get()) != 0)
      return say(path + " does not lie in the file in one stretch");
    if (detail::element_count(expected.extents) > 0 &&
        detail::place_of(dataset.get()) != expected.place)
      say(concat(path, " lies at byte ", detail::place_of(dataset.get()),
                 ", the manifest says ", expected.place));
  }

  static std::vector<std::int64_t> extents_of(hid_t dataset) {
    const Handle space = own(H5Dget_space(dataset), H5Sclose, "H5Dget_space");
    const int count = check_hdf5(H5Sget_simple_extent_ndims(space.get()),
                                 "H5Sget_simple_extent_ndims");
    std::vector<hsize_t> sizes(static_cast<std::size_t>(count));
    check_hdf5(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr),
               "H5Sget_simple_extent_dims");
    return {sizes.begin(), sizes.end()};
  }

  template <class T>
  void compare_number(hid_t root, const std::string& path,
                      const std::string& name, T expected) {
    const Handle attribute =
        Handle(H5Aopen_by_name(root, path.c_str(), name.c_str(), H5P_DEFAULT,
                               H5P_DEFAULT),
               H5Aclose);
    const std::string what = concat(path, ", attribute ", name);
    if (attribute.get() < 0) return say(what + " is missing");
    const Handle space =
        own(H5Aget_space(attribute.get()), H5Sclose, "H5Aget_space");
    T found{};
    const hid_t type =
        std::is_same_v<T, double> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64;
    if (H5Sget_simple_extent_npoints(space.get()) != 1 ||
        H5Aread(attribute.get(), type, &found) < 0)
      return say(what + " is no number");
    if (found != expected && (found == found || expected == expected))
      say(concat(what, " is ", found, ", the manifest says ", expected));
  }

  void compare_counts(hid_t root) {
    const std::string path = "/update_counts";
    const auto& parameters = stored_.layout.parameters;
    const std::size_t before = problems_.size();
    std::vector<std::int64_t> counts(parameters.size());
    const Handle dataset =
        own(H5Dopen2(root, path.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen");
    compare_array(
        root, path,
        {H5T_STD_I64LE, {std::ssize(counts)}, detail::place_of(dataset.get())});
    if (problems_.size() > before || counts.empty()) return;
    check_hdf5(H5Dread(dataset.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL,
                       H5P_DEFAULT, counts.data()),
               "H5Dread");
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] != parameters[i].update_count)
        say(concat(path, " has ", counts[i], " for ",
                   detail::quoted(parameters[i].name), ", the manifest says ",
                   parameters[i].update_count));
  }

  void compare_parameters(hid_t root) {
    const detail::ElementTypes types;
    const auto& parameters = stored_.layout.parameters;
    std::vector<std::string> links;
    for (const auto& parameter : parameters)
      links.push_back(detail::link_name(parameter.name));
    if (!compare_links(root, "/parameters", links)) return;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string path = "/parameters/" + links[i];
      std::vector<std::string> arrays;
      for (const auto& array : parameters[i].arrays)
        arrays.push_back(detail::link_name(array.name));
      if (!compare_links(root, path, arrays)) continue;
      for (std::size_t k = 0; k < arrays.size(); ++k)
        compare_array(root, join(path, arrays[k]),
                      {types[parameters[i].arrays[k].dtype],
                       parameters[i].extents, stored_.arrays[i][k].place});
    }
  }

  void compare_groups(hid_t root) {
    std::vector<std::string> links;
    for (const auto& group : stored_.layout.groups)
      links.push_back(detail::link_name(group.name));
    if (!compare_links(root, "/optimizer", links)) return;
    for (std::size_t i = 0; i < links.size(); ++i)
      for (const auto& hyperparameter :
           stored_.layout.groups[i].hyperparameters)
        compare_number(root, "/optimizer/" + links[i], hyperparameter.first,
                       hyperparameter.second);
  }

  void compare_user(hid_t root) {
    const UserData& user = stored_.layout.content.user;
    std::vector<std::string> links;
    for (const auto& entry : user)
      links.push_back(detail::link_name(entry.first));
    if (!compare_links(root, "/user", links)) return;
    for (const auto& entry : user) {
      const auto place = stored_.user.find(entry.first);
      std::visit(
          [&]<class T>(const T& value) {
            if constexpr (requires { value.extents; })
              compare_array(
                  root, "/user/" + detail::link_name(entry.first),
                  {type_of(value.values), value.extents,
                   place == stored_.user.end() ? 0 : place->second.place});
          },
          entry.second);
    }
  }

  static hid_t type_of(const std::vector<float>&) { return H5T_IEEE_F32LE; }
  static hid_t type_of(const std::vector<double>&) { return H5T_IEEE_F64LE; }
  static hid_t type_of(const std::vector<std::int64_t>&) {
    return H5T_STD_I64LE;
  }

  Handle file_;
  const detail::StoredLayout& stored_;
  const detail::FileHeader& header_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> hdf5_differences(const std::filesystem::path& path,
                                          const detail::StoredLayout& stored,
                                          const detail::FileHeader& header) {
  const detail::SilentHdf5 silence;
  Comparison comparison(path, stored, header);
  try {
    return comparison.run();
  } catch (const CheckpointError& error) {
    return {concat("HDF5's part: ", error.what())};
  }
}

}  // namespace kzero::tools
