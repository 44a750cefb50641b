// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The command kzero as its users see it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>

#include "io/sample_file.hpp"
#include "io/scratch_folder.hpp"
#include "tools/command.hpp"

namespace kzero::test {
namespace {

using Json = nlohmann::json;

class Command : public testing::Test {
 protected:
  Command() {
    write_sample(folder / "a.h5");
    write_sample(folder / "b.h5");
  }

  std::string name(const std::string& file) const {
    return "'" + (folder / file).string() + "'";
  }

  /// Flips a bit of an element, or of HDF5's part.
  void damage(const std::string& file, bool of_array) const {
    std::string bytes = file_bytes(folder / file);
    const detail::CheckpointReader reader(folder / file);
    const detail::Stretch stretch =
        of_array ? detail::array_stretches(reader.stored()).back()
                 : detail::Stretch{detail::header_bytes, 1};
    bytes[std::size_t(stretch.place)] ^= 4;
    write_bytes(folder / file, bytes);
  }

  const ScratchFolder folder;
};

TEST_F(Command, ListsAFile) {
  expect(ask("ls " + name("a.h5")), 0,
         {"41 steps", "saved by 3 ranks", "z/first", "bfloat16", "256 x 256",
          "exp_avg_sq", "scalar", "größe λ", "no/decay: sgd", "user epoch: 5",
          "user curve: array 2 x 1", "scaler dynamic"});
  const Answer answer = ask("--json ls " + name("a.h5"));
  const Json json = Json::parse(answer.text);
  EXPECT_EQ(json["step"], 41);
  EXPECT_EQ(json["parameters"].size(), 6u);
  EXPECT_EQ(json["parameters"][0]["arrays"]["main"], "float32");
}

TEST_F(Command, ShowsAnArray) {
  expect(ask("show " + name("a.h5") + " 'größe λ'"), 0,
         {"float32 2 x 3 x 5", "30 elements, 1 zeros", "maximum 3.625"});
  expect(ask("show " + name("a.h5") + " half"), 0,
         {"65536 elements", "NaN", "infinite"});
  expect(ask("show " + name("a.h5") + " empty"), 0, {"0 elements"});
  expect(ask("show " + name("a.h5") + " 'größe λ' --slice 1,0:2,3:"), 0,
         {"2.25 2.375\n2.875 3\n"});
  const Json json =
      Json::parse(ask("show --json " + name("a.h5") + " half/main").text);
  EXPECT_EQ(json["array"], "main");
  EXPECT_EQ(json["maximum"], 65535 / 8.0);
  EXPECT_EQ(json["histogram"].size(), 16u);
  EXPECT_EQ(
      Json::parse(ask("show --json " + name("a.h5") + " 'a scalar' --slice ''")
                      .text)["type"],
      "float64");
}

TEST_F(Command, RefusesSlicesAndNamesThatThereAreNot) {
  expect(ask("show " + name("a.h5") + " siz"), 2, {"no parameter", "siz"});
  expect(ask("show " + name("a.h5") + " fir"), 2, {"z/first"});
  for (const char* slice : {"1", "1,1,5", "2,0,0", "1,0,0,0", "a,0,0",
                            "1,2:1,0", "-1,0,0", "1,0,0:6", "1,0,"})
    expect(ask("show " + name("a.h5") + " 'größe λ' --slice=" + slice), 2,
           {"slice", "2 x 3 x 5"});
}

TEST_F(Command, VerifiesFiles) {
  expect(ask("verify " + name("a.h5") + " " + name("b.h5")), 0,
         {"a.h5: in order", "b.h5: in order"});
  damage("b.h5", true);
  expect(ask("verify " + name("a.h5") + " " + name("b.h5")), 1,
         {"a.h5: in order", "b.h5: ", "is damaged"});
  damage("a.h5", false);
  const Answer answer = ask("verify --json " + name("a.h5"));
  EXPECT_EQ(answer.code, 1);
  EXPECT_EQ(Json::parse(answer.text)[0]["in_order"], false);
  expect(ask("verify " + name("none.h5")), 2, {"No such file"});
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect(ask("verify " + name("pipe")), 2, {"no kzero checkpoint"});
}

TEST_F(Command, ComparesFiles) {
  const std::string both = name("a.h5") + " " + name("b.h5");
  expect(ask("diff " + both), 0, {"no difference"});
  detail::FileLayout layout = sample_layout();
  layout.content.step = 42;
  layout.groups[0].hyperparameters[1].second = 0.5;
  std::get<UserArray<double>>(layout.content.user["curve"]).values[1] = 1.25;
  layout.parameters[4].extents = {2, 3, 6};
  layout.parameters.pop_back();
  Contents contents = sample_contents(layout);
  auto* const values = reinterpret_cast<float*>(contents["half|main"].data());
  values[7] += 0.5F;
  values[9] += 0.25F;
  {
    detail::CheckpointWriter writer(folder / "b.h5", layout);
    for_each_array(layout, [&](const auto& parameter, const auto& array,
                               const std::string& key, std::int64_t) {
      writer.write(parameter, array, contents.at(key).data());
    });
    writer.finish();
    writer.take_name();
  }
  expect(
      ask("diff " + both), 1,
      {"half/main: 2 elements differ, by 0.5 at most", "element 7: 0.875",
       "1.375", "2 x 3 x 5 and 2 x 3 x 6", "in the first file alone",
       "step: 41 and 42", "groups/default/hyperparameters/beta1: 0.9 and 0.5",
       "user/curve: 1 elements differ, by 0.25"});
  expect(ask("diff " + both + " --absolute 0.3"), 1, {"1 elements differ"});
  const Json json = Json::parse(ask("--json diff " + both).text);
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["differences"][0]["count"], 2);
  expect(ask("diff " + both + " --relative -1"), 2, {"--relative"});
}

TEST_F(Command, ComparesWhatIsAlmostTheSame) {
  detail::FileLayout layout = sample_layout();
  UserData& user = layout.content.user;
  const std::int64_t large = std::int64_t{1} << 53;
  const auto write = [&](const std::string& file) {
    detail::CheckpointWriter writer(folder / file, layout);
    const Contents contents = sample_contents(layout);
    for_each_array(layout, [&](const auto& parameter, const auto& array,
                               const std::string& key, std::int64_t) {
      writer.write(parameter, array, contents.at(key).data());
    });
    writer.finish();
    writer.take_name();
  };
  user["random"] = UserArray<std::int64_t>{{2}, {1, large}};
  // The name of another one's array.
  layout.parameters.push_back(
      {"half/main", "default", 1, {2}, {{"value", DType::float32}}});
  write("a.h5");
  expect(ask("diff " + name("a.h5") + " " + name("a.h5")), 0,
         {"no difference"});
  user["random"] = UserArray<std::int64_t>{{2}, {1, large + 1}};
  user["loss"] = 0.25 + 0x1p-50;
  user["files"] = std::vector<std::string>{"a", "c"};
  layout.parameters[1].group = "no/decay";
  layout.skipped_in_a_row = 3;
  write("b.h5");
  expect(ask("diff " + name("a.h5") + " " + name("b.h5")), 1,
         {"user/random: 1 elements differ", "user/loss: 0.25 and 0.25000",
          "user/files/1: \"b\" and \"c\"", "skipped_in_a_row: 0 and 3",
          "parameters/half/group: \"default\" and"});
}

TEST_F(Command, ComparesFilesOfOtherKinds) {
  for (const std::string other : {"c.npz", "c.safetensors"}) {
    expect(ask("convert " + name("a.h5") + " " + name(other)), 0, {});
    expect(ask("diff " + name("a.h5") + " " + name(other)),
           other == "c.npz" ? 1 : 0,
           {other == "c.npz" ? "z/first is bfloat16 and float32"
                             : "no difference"});
  }
}

TEST_F(Command, ExplainsItself) {
  expect(ask("--help"), 0, {"ls", "show", "verify", "diff", "Exit codes"});
  expect(ask("--version"), 0, {"0.1.0"});
  expect(ask(""), 2, {"subcommand"});
  expect(ask("ls"), 2, {"FILE"});
  expect(ask("ls " + name("none.h5")), 2, {"none.h5", "No such file"});
  expect(ask("ls " + name("a.h5") + " > /dev/full"), 2, {});
}

}  // namespace
}  // namespace kzero::test
