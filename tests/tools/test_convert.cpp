// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero convert, with NumPy, h5py and, where there is one, the Python package
// safetensors as the other side.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <bit>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/manifest.hpp"
#include "io/python_with_h5py.hpp"
#include "io/sample_file.hpp"
#include "io/scratch_folder.hpp"
#include "tools/command.hpp"
#include "tools/tensors.hpp"

namespace kzero::test {
namespace {

class Convert : public testing::Test {
 protected:
  Convert() { write_sample(folder / "a.h5"); }

  std::string name(const std::string& file) const {
    return "'" + (folder / file).string() + "'";
  }

  Answer convert(const std::string& from, const std::string& to,
                 const std::string& options = "") const {
    return ask("convert " + name(from) + " " + name(to) + " " + options);
  }

  /// Whether Python has no complaint.
  bool agrees(const std::string& what, const std::string& files) const {
    const std::string python = python_with_h5py();
    EXPECT_FALSE(python.empty()) << "install python3-h5py";
    return std::system((python +
                        " '" KZERO_TEST_SOURCE_DIR "/tools/check_tensors.py' " +
                        what + " " + files)
                           .c_str()) == 0;
  }

  detail::StoredLayout stored(const std::string& file) const {
    return detail::CheckpointReader(folder / file).stored();
  }

  const ScratchFolder folder;
};

/// All but where the arrays lie.
std::string text_of(detail::StoredLayout stored) {
  for (std::size_t i = 0; i < stored.arrays.size(); ++i)
    for (auto& array : stored.arrays[i]) array.place = 0;
  for (auto& entry : stored.user) entry.second.place = 0;
  return detail::Manifest(stored).text();
}

TEST_F(Convert, BringsEverythingBack) {
  for (const std::string between : {"b.safetensors", "b.npz"}) {
    SCOPED_TRACE(between);
    expect(convert("a.h5", between, "--state"), 0, {"16 arrays"});
    expect(convert(between, "c.h5"), 0, {"16 arrays"});
    EXPECT_EQ(text_of(stored("a.h5")), text_of(stored("c.h5")));
    expect(ask("diff " + name("a.h5") + " " + name("c.h5")), 0,
           {"no difference"});
    expect(ask("verify " + name("c.h5")), 0, {"in order"});
  }
  // And through both, one after the other.
  expect(convert("b.safetensors", "d.npz"), 0, {});
  expect(convert("d.npz", "e.safetensors"), 0, {});
  expect(convert("e.safetensors", "f.h5"), 0, {});
  EXPECT_EQ(text_of(stored("a.h5")), text_of(stored("f.h5")));
}

TEST_F(Convert, GivesOthersTheSameBits) {
  expect(convert("a.h5", "b.safetensors"), 0, {"6 arrays"});
  expect(convert("a.h5", "b.npz"), 0, {"6 arrays"});
  EXPECT_TRUE(agrees("values", name("a.h5") + " " + name("b.safetensors") +
                                   " " + name("b.npz")));
  expect(convert("a.h5", "c.safetensors", "--main"), 0, {"6 arrays"});
  EXPECT_TRUE(agrees("main", name("a.h5") + " " + name("c.safetensors")));
}

TEST_F(Convert, TakesWhatNumPyWrites) {
  ASSERT_TRUE(agrees("write", name("n.npz") + " " + name("packed.npz")));
  for (const std::string file : {"n.npz", "packed.npz"}) {
    SCOPED_TRACE(file);
    expect(convert(file, "n.h5"), 2, {"truth", "--skip-other-types"});
    expect(convert(file, "n.h5", "--skip-other-types"), 0,
           {"passed over: \"count\"", "passed over: \"truth.npy\"",
            "passed over: \"records.npy\"", "7 arrays"});
    EXPECT_TRUE(agrees("written", name("n.h5")));
  }
}

TEST_F(Convert, TakesWhatSafetensorsHas) {
  ASSERT_TRUE(agrees("write_safetensors", name("s.safetensors")));
  expect(convert("s.safetensors", "s.h5"), 2, {"U8", "--skip-other-types"});
  expect(convert("s.safetensors", "s.h5", "--skip-other-types"), 0,
         {"passed over: \"bytes\" has the type U8", "2 arrays"});
  const Answer answer = ask("show " + name("s.h5") + " b.half --slice :");
  expect(answer, 0, {"1 -2 0.5"});
}

TEST_F(Convert, MakesParametersOfStateWhenAsked) {
  expect(convert("a.h5", "b.safetensors", "--state"), 0, {});
  expect(convert("b.safetensors", "c.h5", "--without-state"), 0, {"16 arrays"});
  expect(ask("ls " + name("c.h5")), 0, {"0 steps", "z/first/exp_avg"});
  const Answer answer = ask("diff " + name("a.h5") + " " + name("c.h5"));
  expect(answer, 1, {"step: 41 and 0", "beta1: 0.9 and nothing"});
  EXPECT_EQ(answer.text.find("null"), answer.text.npos) << answer.text;
}

TEST_F(Convert, RefusesWhatDoesNotFitTogether) {
  expect(convert("none.h5", "b.npz"), 2, {"none.h5", "No such file"});
  expect(convert("none.npz", "b.h5"), 2, {"none.npz", "No such file"});
  expect(convert("none.safetensors", "b.h5"), 2, {"No such file"});
  // Nobody writes to it.
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect(convert("pipe", "b.h5"), 2, {"no kzero checkpoint"});
  expect(convert("pipe", "b.h5", "--from npz"), 2, {"as npz"});
  expect(convert("pipe", "b.h5", "--from safetensors"), 2, {"as safetensors"});
  expect(convert("a.h5", "none/b.npz"), 2, {"none/b.npz", "No such file"});
  expect(convert("a.h5", "none/b.safetensors"), 2, {"must exist"});
  expect(convert("a.h5", "b.h5", "--state --main"), 2, {"--main"});
  expect(convert("a.h5", "b.h5", "--state --type float32"), 2,
         {"--type", "--without-state"});
  expect(convert("a.h5", "b.h5", "--from npz"), 2, {"as npz"});
  expect(convert("a.h5", "b.h5", "--from safetensors"), 2, {"as safetensors"});
  expect(convert("a.h5", "b.h5", "--type int64"), 2, {"--type"});
  expect(convert("a.h5", "b.pt"), 2, {".pt", "--to"});
  expect(convert("a.h5", "b.pt", "--to npz"), 0, {});
  expect(convert("b.pt", "c.h5", "--from npz --state"), 2, {"--state"});
}

TEST_F(Convert, RefusesADamagedCheckpointAndLeavesWhatStoodThere) {
  for (const std::string target : {"b.safetensors", "b.npz", "b.h5"}) {
    SCOPED_TRACE(target);
    write_bytes(folder / target, "what stood there");
    std::string bytes = file_bytes(folder / "a.h5");
    bytes[std::size_t(detail::array_stretches(stored("a.h5")).back().place)] ^=
        1;
    write_bytes(folder / "damaged.h5", bytes);
    expect(convert("damaged.h5", target, "--state --from checkpoint"), 2,
           {"is damaged"});
    EXPECT_EQ(file_bytes(folder / target), "what stood there");
  }
}

TEST_F(Convert, RefusesAManifestThatIsOfOtherArrays) {
  expect(convert("a.h5", "b.safetensors", "--state"), 0, {});
  std::string bytes = file_bytes(folder / "b.safetensors");
  const std::size_t place = bytes.find("half/main\"");
  ASSERT_NE(place, bytes.npos);
  bytes.replace(place, 4, "hald");
  write_bytes(folder / "b.safetensors", bytes);
  expect(convert("b.safetensors", "c.h5"), 2, {"half/main", "manifest"});
}

TEST_F(Convert, WritesFilesWithoutArrays) {
  for (const std::string target : {"none.npz", "none.safetensors", "none.h5"}) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(agrees("write_bytes", name("bytes.safetensors")));
    expect(convert("bytes.safetensors", target, "--skip-other-types"), 0,
           {"0 arrays"});
    expect(convert(target, "again.h5"), 0, {"0 arrays"});
  }
}

TEST_F(Convert, GivesEqualBytesForEqualContent) {
  for (const std::string target : {"b.npz", "b.safetensors"}) {
    expect(convert("a.h5", target, "--state"), 0, {});
    const std::string first = file_bytes(folder / target);
    expect(convert("a.h5", target, "--state"), 0, {});
    EXPECT_TRUE(first == file_bytes(folder / target)) << target;
  }
}

TEST_F(Convert, SpeaksJson) {
  const auto json = nlohmann::json::parse(
      ask("--json convert " + name("a.h5") + " " + name("b.npz")).text);
  EXPECT_EQ(json["arrays"], 6);
  EXPECT_EQ(json["passed_over"].size(), 0u);
}

/// Gives the elements of a vector.
template <class T>
class Elements final : public tools::ByteStream {
 public:
  explicit Elements(std::vector<T> values) : values_(std::move(values)) {}
  void read(std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(),
                reinterpret_cast<const std::byte*>(values_.data()) + done_,
                bytes.size());
    done_ += bytes.size();
  }

 private:
  std::vector<T> values_;
  std::size_t done_ = 0;
};

TEST(Converted, RoundsOnceAndToNearestEven) {
  // Just above half of a step of bfloat16 at 1, by less than float32 can say.
  const std::vector<double> values = {1 + 0x1p-8,
                                      1 + 0x1p-8 + 0x1p-40,
                                      1 + 3 * 0x1p-8,
                                      1 + 3 * 0x1p-8 - 0x1p-40,
                                      -1 - 0x1p-8 - 0x1p-40,
                                      1e300,
                                      0x1p-133,
                                      0x1p-134,
                                      0x1p-134 + 0x1p-170};
  const std::vector<std::uint32_t> bits = {
      0x3f80, 0x3f81, 0x3f82, 0x3f81, 0xbf81, 0x7f80, 0x0001, 0x0000, 0x0001};
  tools::Tensor tensor{"x", tools::TensorType::float64, {9}, [&] {
                         return std::make_unique<Elements<double>>(values);
                       }};
  std::vector<std::uint16_t> got(values.size());
  tools::converted(tensor, tools::TensorType::bfloat16)
      .open()
      ->read(std::as_writable_bytes(std::span(got)));
  for (std::size_t i = 0; i < bits.size(); ++i)
    EXPECT_EQ(got[i], bits[i]) << values[i];
}

}  // namespace
}  // namespace kzero::test
