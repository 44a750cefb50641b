// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// kzero plan.
#include <gtest/gtest.h>

#include <kzero/plan.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/sample_file.hpp"
#include "io/scratch_folder.hpp"
#include "tools/command.hpp"
#include "tools/planned_model.hpp"

namespace kzero::test {
namespace {

using Json = nlohmann::json;

/// Llama 2 with 70 billion parameters (Touvron et al., 2023): 80 layers of
/// width 8192 with grouped queries.
const std::string model_70b = R"({"rule": "adamw", "type": "bfloat16",
 "parameters": [
  {"name": "embedding", "extents": [32000, 8192]},
  {"repeat": 80, "parameters": [
    {"name": "layers.{}.attention.wq", "extents": [8192, 8192]},
    {"name": "layers.{}.attention.wk", "extents": [1024, 8192]},
    {"name": "layers.{}.attention.wv", "extents": [1024, 8192]},
    {"name": "layers.{}.attention.wo", "extents": [8192, 8192]},
    {"name": "layers.{}.feed_forward.w1", "extents": [28672, 8192]},
    {"name": "layers.{}.feed_forward.w2", "extents": [8192, 28672]},
    {"name": "layers.{}.feed_forward.w3", "extents": [28672, 8192]},
    {"name": "layers.{}.attention_norm", "extents": [8192]},
    {"name": "layers.{}.ffn_norm", "extents": [8192]}]},
  {"name": "norm", "extents": [8192]},
  {"name": "output", "extents": [32000, 8192]}]})";

class PlanCommand : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    write_bytes(folder / name, text);
    return "'" + (folder / name).string() + "' ";
  }

  const ScratchFolder folder;
};

TEST_F(PlanCommand, PlansALargeModel) {
  const std::string model = file("70b.json", model_70b);
  expect(ask("plan " + model + "--ranks 1024"), 0,
         {"723 parameters, 68976648192 elements", "rank 0 of 1024"});
  const Json json =
      Json::parse(ask("plan --json " + model + "--ranks 1024").text);
  // Rounded up to whole shards of 64 elements a rank.
  const std::int64_t elements = json["elements"];
  EXPECT_EQ(elements, 68976648192);
  const std::int64_t main = json["memory"]["main"];
  EXPECT_GE(main, 4 * elements / 1024);
  EXPECT_LE(main, 4 * elements / 1024 + 4 * 64 * 723);
  EXPECT_EQ(json["memory"]["moments"], 2 * main);
  EXPECT_EQ(json["unsharded"]["staging"], 0);
  EXPECT_GE(json["all_gather"]["bytes"], 1023 * (2 * elements / 1024));
}

TEST_F(PlanCommand, SaysWhatTheLibraryPlans) {
  const std::string text = R"({"type": "float32", "parameters": [
    {"name": "a", "extents": [1000, 30]}, {"name": "b", "extents": [77],
     "type": "float16"}, {"repeat": 5, "parameters": [{"name": "c{}",
     "extents": [200, 3]}]}, {"name": "f", "extents": [10], "frozen": true},
     {"name": "d", "extents": [200, 3], "tied_to": "c4"}]})";
  const std::string model = file("model.json", text);
  ParameterSet parameters;
  parameters.add("a", {1000, 30});
  parameters.add("b", {77}, {.dtype = DType::float16});
  for (int i = 0; i < 5; ++i) parameters.add("c" + std::to_string(i), {200, 3});
  parameters.add("f", {10}, {.frozen = true});
  parameters.add("d", {200, 3}, {.tied_to = "c4"});
  for (const auto& [name, partition] :
       std::vector<std::pair<std::string, Partition>>{
           {"elements", Partition::elements},
           {"parameters", Partition::parameters},
           {"buckets", Partition::buckets}}) {
    SCOPED_TRACE(name);
    const Plan plan = make_plan(
        parameters, {.ranks = 3, .partition = partition, .bucket_bytes = 4096});
    for (int rank = 0; rank < 3; ++rank) {
      const Json json =
          Json::parse(ask("plan --json --buckets " + model +
                          "--ranks 3 --bucket-bytes 4KiB --partition " + name +
                          " --rank " + std::to_string(rank))
                          .text);
      const Memory memory = plan.memory(rank, 2);
      EXPECT_EQ(json["memory"]["total"], memory.total());
      EXPECT_EQ(json["memory"]["parameters"], memory.parameters);
      EXPECT_EQ(json["memory"]["moments"], memory.moments);
      EXPECT_EQ(json["memory"]["staging"], memory.staging);
      EXPECT_EQ(json["bucket_count"], plan.buckets().size());
      EXPECT_EQ(json["buckets"].size(), plan.buckets().size());
      // Frozen buckets are not gathered; of one owner nothing else is.
      if (partition == Partition::elements) {
        EXPECT_EQ(json["all_gather"]["messages"], 2 * plan.trained_buckets());
      }
    }
  }
}

TEST_F(PlanCommand, TakesAnyFile) {
  write_sample(folder / "a.h5");
  const std::string checkpoint = file("b", file_bytes(folder / "a.h5"));
  const Json of_checkpoint =
      Json::parse(ask("plan --json " + checkpoint + "--ranks 2").text);
  EXPECT_EQ(of_checkpoint["parameters"], 6);
  EXPECT_EQ(of_checkpoint["elements"], 65536 + 65536 + 0 + 1 + 30 + 7);
  for (const std::string name : {"c.npz", "c.safetensors", "c.h5"}) {
    const std::string target = "'" + (folder / name).string() + "' ";
    expect(ask("convert " + checkpoint + target), 0, {});
    const Json json =
        Json::parse(ask("plan --json " + target + "--ranks 2").text);
    EXPECT_EQ(json["elements"], of_checkpoint["elements"]) << name;
    EXPECT_GT(json["memory"]["moments"], 0) << name;
  }
}

TEST_F(PlanCommand, RulesDecideOnState) {
  const auto moments = [&](const std::string& rule,
                           const std::string& hyperparameters) {
    const std::string model =
        file("rule.json", R"({"groups": {"g": {"rule": ")" + rule +
                              R"(", "hyperparameters": )" + hyperparameters +
                              R"(}}, "parameters": [{"extents": [64, 64],
                            "group": "g"}]})");
    return Json::parse(ask("plan --json " + model + "--ranks 1")
                           .text)["memory"]["moments"]
        .get<std::int64_t>();
  };
  const std::int64_t array = 64 * 64 * 4;
  EXPECT_EQ(moments("adamw", "{}"), 2 * array);
  EXPECT_EQ(moments("adamw", R"({"amsgrad": 1})"), 3 * array);
  EXPECT_EQ(moments("sgd", "{}"), 0);
  EXPECT_EQ(moments("sgd", R"({"momentum": 0.9})"), array);
  EXPECT_EQ(moments("rmsprop", R"({"centered": 1, "momentum": 0.5})"),
            3 * array);
  EXPECT_EQ(moments("muon", "{}"), array);
}

TEST_F(PlanCommand, RefusesWhatIsNoModel) {
  const auto refused = [&](const std::string& text,
                           std::initializer_list<const char*> words) {
    expect(ask("plan " + file("wrong.json", text) + "--ranks 2"), 2, words);
  };
  refused("", {"wrong.json", "parse error"});
  refused("[]", {"object"});
  refused("{}", {"parameters"});
  refused(R"({"parameters": [{}]})", {"extents"});
  refused(R"({"parameters": [{"extents": [-1]}]})", {"-1"});
  refused(R"({"parameters": [{"extents": [1], "type": "int64"}]})", {"int64"});
  refused(R"({"parameters": [{"extents": [1], "type": "double"}]})",
          {"double"});
  refused(R"({"rule": "adamx", "parameters": []})", {"adamx", "adamw", "muon"});
  refused(R"({"parameters": [{"repeat": 2, "parameters": [{"name": "a",
            "extents": [1]}]}]})",
          {"\"a\""});
  refused(R"({"parameters": [{"repeat": 99999999, "parameters":
            [{"extents": [1]}]}]})",
          {"1000000 parameters"});
  refused(R"({"parameters": [{"extents": [1], "dtype": "float32"}]})",
          {"dtype", "not known"});
  refused(R"({"parameters": [], "gradient-type": "float32"})",
          {"gradient-type", "not known"});
  refused(R"({"parameters": [{"repeat": -1, "parameters": []}]})", {"-1"});
  refused(R"({"parameters": [{"extents": [1], "frozen": 1}]})",
          {"frozen", "true or false"});
  refused(R"({"parameters": [{"extents": [1], "chunk": 5000000000}]})",
          {"chunk", "5000000000"});
  refused(R"({"rule": "muon", "parameters": [{"extents": [2, 2]}]})",
          {"muon", "elements"});
  expect(ask("plan nothing.json --ranks 2"), 2, {"nothing.json"});
  expect(ask("plan nothing.json"), 2, {"--ranks"});
  const std::string model = file("m.json", R"({"parameters": []})");
  expect(ask("plan " + model + "--ranks 0"), 2, {"--ranks"});
  expect(ask("plan " + model + "--ranks 2 --rank 2"), 2, {"rank 2 of 2"});
  expect(ask("plan " + model + "--ranks 2 --divide"), 2, {"divide"});
  expect(ask("plan " + model + "--ranks 2 --bucket-bytes 0"), 2, {"bucket"});
  expect(ask("plan " + model + "--ranks 20000 --partition buckets"), 2,
         {"16384 ranks"});
  expect(ask("plan " + model + "--ranks 2"), 0, {"0 parameters"});
}

}  // namespace
}  // namespace kzero::test
