// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What Kokkos Tools sees: every kernel, region and allocation of the library is
// named, and work goes on the instance that the caller gave.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/optimizer_support.hpp"
#include "support/own_memory.hpp"
#include "support/whole_partitions.hpp"

namespace kzero::test {
namespace {

struct Seen {
  std::set<std::string> kernels, regions;
  std::map<std::string, std::uint64_t> live;  // bytes by label
};
Seen* seen = nullptr;

class Labels : public testing::Test {
 protected:
  Labels() {
    namespace tools = Kokkos::Tools::Experimental;
    seen = &seen_;
    tools::set_begin_parallel_for_callback(
        [](const char* name, std::uint32_t, std::uint64_t*) {
          seen->kernels.insert(name);
        });
    tools::set_push_region_callback(
        [](const char* name) { seen->regions.insert(name); });
    tools::set_allocate_data_callback(
        [](Kokkos::Profiling::SpaceHandle, const char* name, const void*,
           std::uint64_t bytes) { seen->live[name] += bytes; });
    tools::set_deallocate_data_callback(
        [](Kokkos::Profiling::SpaceHandle, const char* name, const void*,
           std::uint64_t bytes) { seen->live[name] -= bytes; });
  }

  ~Labels() override {
    namespace tools = Kokkos::Tools::Experimental;
    tools::set_begin_parallel_for_callback(nullptr);
    tools::set_push_region_callback(nullptr);
    tools::set_allocate_data_callback(nullptr);
    tools::set_deallocate_data_callback(nullptr);
    seen = nullptr;
  }

  static void expect_ours(const std::string& name) {
    EXPECT_EQ(name.rfind("kzero::", 0), 0u) << name;
    EXPECT_LE(name.size(), 20u) << name;
  }

  Seen seen_;
};

TEST_F(Labels, EverythingIsNamed) {
  ParameterSet model;
  model.add("a", {5000}, typed(DType::bfloat16));
  model.add("b", {300});
  OptimizerOptions options;
  options.clip_norm = 1.0;
  {
    ShardedOptimizer optimizer(world(), model, options);
    optimizer.broadcast_parameters();
    optimizer.zero_gradients();
    optimizer.step();
    for (const char* label : {"kzero::parameters", "kzero::gradients",
                              "kzero::main", "kzero::moments"})
      EXPECT_GT(seen_.live[label], 0u) << label;
  }
  for (const std::string& name : seen_.kernels) expect_ours(name);
  for (const std::string& name : seen_.regions) expect_ours(name);
  for (const auto& [name, bytes] : seen_.live) {
    expect_ours(name);
    EXPECT_EQ(bytes, 0u) << name << " is still allocated";
  }
  EXPECT_TRUE(seen_.kernels.contains("kzero::update"));
  EXPECT_TRUE(seen_.kernels.contains("kzero::sum"));
  EXPECT_TRUE(seen_.regions.contains("kzero::step"));
}

#if KOKKOS_VERSION >= 40000  // before, host back ends have one instance
TEST_F(Labels, WorkGoesOnTheGivenInstance) {
  static std::set<std::uint32_t> devices;
  devices.clear();
  const auto instances =
      Kokkos::Experimental::partition_space(ExecutionSpace(), 1, 1);
  const ExecutionSpace& given = instances[1];
  // Some back ends (OpenMP of 4.6) do not tell their instances apart.
  if (Kokkos::Tools::Experimental::device_id(given) ==
      Kokkos::Tools::Experimental::device_id(ExecutionSpace()))
    return;
  ParameterSet model;
  model.add("a", {5000}, typed(DType::bfloat16));
  OptimizerOptions options;
  options.clip_norm = 1.0;
  ShardedOptimizer optimizer(world(), model, options, given);
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(
      [](const char*, std::uint32_t device, std::uint64_t*) {
        devices.insert(device);
      });
  optimizer.zero_gradients(given);
  optimizer.step();
  EXPECT_EQ(devices, std::set<std::uint32_t>{
                         Kokkos::Tools::Experimental::device_id(given)});
}
#endif

// What is reported is what was allocated, and the state is a P-th on each of P
// ranks.
TEST_F(Labels, AllocatorsFiguresAreTheReportedOnes) {
  constexpr std::int64_t elements = 64 * 12 * 50;
  ParameterSet model;
  model.add("a", {elements}, typed(DType::bfloat16));
  ShardedOptimizer optimizer(world(), model);
  const Memory memory = optimizer.memory();
  const auto ranks = std::uint64_t(optimizer.communicator()->size());
  const auto live = [&](const char* label) { return seen_.live[label]; };
  EXPECT_EQ(live("kzero::parameters"), std::uint64_t(memory.parameters));
  EXPECT_EQ(live("kzero::gradients"), std::uint64_t(memory.gradients));
  EXPECT_EQ(live("kzero::main"), std::uint64_t(memory.main));
  EXPECT_EQ(live("kzero::moments"), std::uint64_t(memory.moments));
  EXPECT_EQ(live("kzero::main") + live("kzero::moments"),
            std::uint64_t(12 * elements) / ranks);
}

TEST_F(Labels, AllocatorsFiguresAreTheReportedOnesOfOwnMemory) {
  const Own own({300, 40}, Order::left);
  const Own half({5000}, Order::gaps, DType::float16, DType::float16);
  const OwnArray frozen(DType::float64, {400}, Order::gaps);
  ParameterSet model;
  own.add_to(model, "own");
  half.add_to(model, "half");
  model.add("frozen", frozen.array(), {.frozen = true});
  {
    ShardedOptimizer optimizer(world(), model);
    const Memory memory = optimizer.memory();
    const auto live = [&](const char* label) { return seen_.live[label]; };
    EXPECT_EQ(live("kzero::parameters"), 0u);
    EXPECT_EQ(live("kzero::gradients"), std::uint64_t(memory.gradients));
    EXPECT_EQ(live("kzero::averaged"), std::uint64_t(memory.averaged));
    EXPECT_EQ(live("kzero::main"), std::uint64_t(memory.main));
    EXPECT_EQ(live("kzero::moments"), std::uint64_t(memory.moments));
    // Nothing was reduced yet: the pieces of the gather alone.
    EXPECT_EQ(live("kzero::staging"), std::uint64_t(memory.staging));
    for (const char* label : {"kzero::averaged", "kzero::staging"})
      EXPECT_GT(live(label), 0u) << label;
    optimizer.broadcast_parameters();
    optimizer.zero_gradients();
    optimizer.reload_main_from_parameters();
  }
  for (const std::string& name : seen_.kernels) expect_ours(name);
  for (const auto& [name, bytes] : seen_.live) {
    expect_ours(name);
    EXPECT_EQ(bytes, 0u) << name << " is still allocated";
  }
}

TEST_F(Labels, WorkMemoryOfMatricesIsNamedAndCounted) {
  for (const Partition partition : whole_partitions(world()->size())) {
    ParameterSet model;
    model.add("matrix", {30, 40});
    OptimizerOptions options;
    options.rule = Muon{};
    options.plan.partition = partition;
    {
      ShardedOptimizer optimizer(world(), model, options);
      EXPECT_EQ(seen_.live["kzero::work"],
                std::uint64_t(optimizer.memory().work));
      EXPECT_EQ(optimizer.memory().work > 0, !optimizer.segments({0}).empty());
    }
    EXPECT_EQ(seen_.live["kzero::work"], 0u);
  }
}

}  // namespace
}  // namespace kzero::test
