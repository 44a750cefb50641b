// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Files with right checksums in which HDF5 finds something else than kzero.
#include "tools/hdf5_comparison.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "io/edited_file.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/hdf5_objects.hpp"
#include "io/sample_file.hpp"
#include "io/scratch_folder.hpp"
#include "tools/command.hpp"

namespace kzero::test {
namespace {

using detail::Handle;

constexpr const char* value = "/parameters/größe λ/value";

class Hdf5Comparison : public testing::Test {
 protected:
  Hdf5Comparison() : path(folder / "file.h5") { write_sample(path); }

  /// Lets HDF5 edit the file; the checksums are right again afterwards.
  void edit(const std::function<void(hid_t)>& f) const {
    {
      const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT),
                        H5Fclose);
      f(file.get());
    }
    seal_metadata(path);
  }

  void expect_found(std::initializer_list<const char*> words) const {
    expect(ask("verify '" + path.string() + "'"), 1, words);
    // What kzero itself reads is not touched by it.
    EXPECT_NO_THROW(detail::CheckpointReader(path).verify_arrays());
  }

  /// A dataset of 2 x 3 x 5 in the place of another one.
  void replace(hid_t file, const std::function<void(hid_t)>& prepare) const {
    ASSERT_GE(H5Ldelete(file, value, H5P_DEFAULT), 0);
    const Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    prepare(list.get());
    const std::vector<std::int64_t> extents = {2, 3, 5};
    const Handle dataset(H5Dcreate2(file, value, H5T_IEEE_F32LE,
                                    detail::make_space(extents).get(),
                                    H5P_DEFAULT, list.get(), H5P_DEFAULT),
                         H5Dclose);
    ASSERT_GE(dataset.get(), 0);
  }

  const ScratchFolder folder;
  const std::filesystem::path path;
};

TEST_F(Hdf5Comparison, FindsNothingInWhatWasWritten) {
  expect(ask("verify '" + path.string() + "'"), 0, {"in order"});
  edit([](hid_t) {});
  expect(ask("verify '" + path.string() + "'"), 0, {"in order"});
}

TEST_F(Hdf5Comparison, FindsLinksToElsewhere) {
  edit([](hid_t file) {
    H5Ldelete(file, value, H5P_DEFAULT);
    H5Lcreate_soft("/parameters/half/value", file, value, H5P_DEFAULT,
                   H5P_DEFAULT);
  });
  expect_found({"größe λ/value is a link to somewhere else"});
}

TEST_F(Hdf5Comparison, FindsLinksToOtherFiles) {
  edit([](hid_t file) {
    H5Ldelete(file, value, H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/x", file, value, H5P_DEFAULT,
                       H5P_DEFAULT);
  });
  expect_found({"größe λ/value is a link to somewhere else"});
}

TEST_F(Hdf5Comparison, FindsExternalStorage) {
  edit([&](hid_t file) {
    replace(file,
            [](hid_t list) { H5Pset_external(list, "/etc/passwd", 0, 120); });
  });
  expect_found({"größe λ/value does not lie in the file in one stretch"});
}

TEST_F(Hdf5Comparison, FindsVirtualDatasets) {
  edit([&](hid_t file) {
    replace(file, [](hid_t list) {
      const std::vector<std::int64_t> extents = {2, 3, 5};
      const Handle space = detail::make_space(extents);
      H5Pset_virtual(list, space.get(), "/etc/passwd", "/x", space.get());
    });
  });
  expect_found({"größe λ/value does not lie in the file in one stretch"});
}

TEST_F(Hdf5Comparison, FindsChunks) {
  edit([&](hid_t file) {
    replace(file, [](hid_t list) {
      const hsize_t chunk[] = {1, 3, 5};
      H5Pset_chunk(list, 3, chunk);
    });
  });
  expect_found({"größe λ/value does not lie in the file in one stretch"});
}

TEST_F(Hdf5Comparison, FindsOtherElements) {
  edit([](hid_t file) {
    const std::string parent = "/parameters/half/";
    const auto move = [&](const std::string& from, const std::string& to) {
      H5Lmove(file, (parent + from).c_str(), file, (parent + to).c_str(),
              H5P_DEFAULT, H5P_DEFAULT);
    };
    move("exp_avg", "other");
    move("exp_avg_sq", "exp_avg");
    move("other", "exp_avg_sq");
  });
  expect_found({"half/exp_avg lies at byte", "half/exp_avg_sq lies at byte",
                "the manifest says"});
}

TEST_F(Hdf5Comparison, FindsOtherTypesAndShapes) {
  edit([](hid_t file) {
    H5Ldelete(file, value, H5P_DEFAULT);
    const std::vector<std::int64_t> extents = {30};
    detail::create_dataset(file, value, H5T_STD_I32LE, extents);
  });
  expect_found({"another type", "another shape"});
}

TEST_F(Hdf5Comparison, FindsWhatIsMissingAndWhatIsThereBeside) {
  edit([](hid_t file) {
    H5Ldelete(file, value, H5P_DEFAULT);
    H5Lmove(file, "/user/note", file, "/parameters/half/note", H5P_DEFAULT,
            H5P_DEFAULT);
  });
  expect_found({"/parameters/größe λ/value is missing",
                "/parameters/half/note is there, and not in the manifest",
                "/user/note is missing"});
  edit([](hid_t file) { H5Ldelete(file, "/scaler", H5P_DEFAULT); });
  expect_found({"/scaler is missing"});
}

TEST_F(Hdf5Comparison, FindsOtherNumbers) {
  edit([](hid_t file) {
    H5Adelete(file, "step");
    detail::write_attribute(file, "step", std::int64_t{40});
    const Handle group(H5Gopen2(file, "/optimizer/default", H5P_DEFAULT),
                       H5Gclose);
    H5Adelete(group.get(), "beta1");
    const Handle counts(H5Dopen2(file, "/update_counts", H5P_DEFAULT),
                        H5Dclose);
    const std::vector<std::int64_t> wrong = {41, 41, 40, 40, 39, 2};
    H5Dwrite(counts.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT,
             wrong.data());
  });
  expect_found({"attribute step is 40, the manifest says 41",
                "attribute beta1 is missing",
                "39 for \"größe λ\", the manifest says 40"});
}

// Whatever was changed, checksums find it first.
TEST_F(Hdf5Comparison, IsNotBegunWithDamagedFiles) {
  const std::string bytes = file_bytes(path);
  const auto metadata = detail::metadata_stretches(
      detail::CheckpointReader(path).stored(),
      detail::read_header(bytes.substr(0, std::size_t(detail::header_bytes))));
  std::mt19937 random(3);
  for (int i = 0; i < 24; ++i) {
    const detail::Stretch& stretch = metadata[random() % metadata.size()];
    std::string changed = bytes;
    // Anywhere, or among what HDF5 reads.
    const std::size_t place = i % 2 == 0
                                  ? random() % bytes.size()
                                  : std::size_t(stretch.place) +
                                        random() % std::size_t(stretch.bytes);
    changed[place] = static_cast<char>(changed[place] ^
                                       static_cast<char>(1 + random() % 255));
    write_bytes(path, changed);
    const Answer answer = ask("verify '" + path.string() + "'");
    expect(answer, 1, {"file.h5"});
    EXPECT_EQ(answer.text.find("HDF5's part:"), answer.text.npos)
        << answer.text;
  }
}

}  // namespace
}  // namespace kzero::test
