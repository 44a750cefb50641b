// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The trajectories of optimizers.json (float64: from torch.optim 1.13.0, of
// lion and lamb from their equations), tiled so that shard borders cut
// parameters, over several buckets, by every instruction set.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "kernels/kernels.hpp"
#include "support/optimizer_support.hpp"

namespace kzero::test {
namespace {

using Json = nlohmann::json;

// Defaults of torch are defaults here.
template <class R>
R with_common(const Json& options) {
  R rule;
  rule.learning_rate = options.at("lr");
  rule.weight_decay = options.value("weight_decay", rule.weight_decay);
  rule.maximize = options.value("maximize", rule.maximize);
  if constexpr (requires { rule.epsilon; })
    rule.epsilon = options.value("eps", rule.epsilon);
  if constexpr (requires { rule.amsgrad; })
    rule.amsgrad = options.value("amsgrad", rule.amsgrad);
  if constexpr (requires { rule.momentum; })
    rule.momentum = options.value("momentum", rule.momentum);
  if constexpr (requires { rule.beta1; }) {
    if (options.contains("betas")) {
      rule.beta1 = options["betas"][0];
      rule.beta2 = options["betas"][1];
    }
  }
  return rule;
}

Rule rule_of(const Json& reference) {
  const Json& options = reference.at("options");
  const std::string name = reference.at("rule");
  if (name == "sgd") {
    Sgd rule = with_common<Sgd>(options);
    rule.dampening = options.value("dampening", 0.0);
    rule.nesterov = options.value("nesterov", false);
    return rule;
  }
  if (name == "adagrad") {
    Adagrad rule = with_common<Adagrad>(options);
    rule.learning_rate_decay = options.value("lr_decay", 0.0);
    rule.initial_accumulator_value =
        options.value("initial_accumulator_value", 0.0);
    return rule;
  }
  if (name == "rmsprop") {
    RmsProp rule = with_common<RmsProp>(options);
    rule.alpha = options.value("alpha", 0.99);
    rule.centered = options.value("centered", false);
    return rule;
  }
  if (name == "adamw") return with_common<AdamW>(options);
  if (name == "adam") return with_common<Adam>(options);
  if (name == "lion") return with_common<Lion>(options);
  if (name == "lamb") return with_common<Lamb>(options);
  throw std::invalid_argument("no rule for " + name);
}

std::vector<Json> cases() {
  std::ifstream file(std::string(KZERO_TEST_DATA) + "/optimizers.json");
  const Json all = Json::parse(file);
  return all.at("cases");
}

/// A reference's parameters, each tiled to several of ours: repetition changes
/// no ratio of norms.
class Run {
 public:
  /// The start is rounded to the type start.
  Run(const Json& reference, DType dtype, DType start)
      : reference_(reference), communicator_(world()) {
    std::vector<std::array<std::int64_t, 2>> tensors = {{0, 7}};
    tensors = reference.at("options").value("tensors", tensors);
    ParameterSet model;
    for (std::int64_t copies : {5, 100, 1, 37, 200})
      for (const auto& [begin, end] : tensors) {
        model.add(detail::concat("p", copies, "_", begin),
                  {copies, end - begin}, typed(dtype));
        tensors_.push_back({begin, end - begin});
      }
    OptimizerOptions options;
    options.rule = rule_of(reference);
    options.plan.bucket_bytes = 2000;
    optimizer_.emplace(communicator_, model, options);
    const auto initial = reference.at("initial").get<std::vector<double>>();
    visit_dtype(start, [&](auto type) {
      using Start = typename decltype(type)::type;
      using Wide = std::conditional_t<sizeof(Start) == 8, double, float>;
      for (std::int64_t p = 0; p < model.size(); ++p)
        write_parameter(*optimizer_, {p}, [&](std::int64_t i) {
          const double value = initial[index_of(p, i)];
          return static_cast<Wide>(Start(static_cast<Wide>(value)));
        });
    });
  }

  ShardedOptimizer& optimizer() { return *optimizer_; }
  std::int64_t parameters() const { return std::ssize(tensors_); }

  /// The reference's element that is element i of our parameter.
  std::size_t index_of(std::int64_t parameter, std::int64_t i) const {
    const auto& [begin, size] = tensors_[std::size_t(parameter)];
    return std::size_t(begin + i % size);
  }

  /// The ranks' parts differ; their mean is the reference's gradient.
  void step(std::size_t step) {
    const double weight =
        2.0 * (communicator_->rank() + 1) / (communicator_->size() + 1.0);
    const auto gradient =
        reference_["gradients"][step].get<std::vector<double>>();
    for (std::int64_t p = 0; p < parameters(); ++p)
      fill_gradient(*optimizer_, {p}, [&](std::int64_t i) {
        return weight * gradient[index_of(p, i)];
      });
    EXPECT_TRUE(optimizer_->step().updated());
  }

 private:
  const Json& reference_;
  std::shared_ptr<Communicator> communicator_;
  std::vector<std::array<std::int64_t, 2>> tensors_;  // begin, size
  std::optional<ShardedOptimizer> optimizer_;
};

void follow(const Json& reference, DType dtype) {
  Run run(reference, dtype, dtype);
  ASSERT_GT(run.optimizer().plan().buckets().size(), 1u);
  const bool wide = dtype == DType::float64;
  const double relative = wide ? 1e-12 : 1e-5, absolute = wide ? 1e-15 : 1e-7;
  const std::size_t steps = reference.at("gradients").size();
  for (std::size_t step = 0; step < steps; ++step) {
    run.step(step);
    const auto expected =
        reference["parameters"][step].get<std::vector<double>>();
    for (std::int64_t p = 0; p < run.parameters(); ++p) {
      const auto got = read_parameter(run.optimizer(), {p});
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double value = expected[run.index_of(p, std::int64_t(i))];
        ASSERT_NEAR(got[i], value, absolute + relative * std::abs(value))
            << "step " << step + 1 << ", parameter " << p << ", element " << i;
      }
    }
  }
  EXPECT_EQ(run.optimizer().update_count({0}), std::int64_t(steps));
}

// The float32 twin's parameters are the 16-bit parameters' main parameters.
template <class Half>
void follow_twin(const Json& reference) {
  Run run(reference, dtype_of<Half>, dtype_of<Half>);
  Run twin(reference, DType::float32, dtype_of<Half>);
  const std::size_t steps = reference.at("gradients").size();
  for (std::size_t step = 0; step < steps; ++step) {
    run.step(step);
    twin.step(step);
    for (std::int64_t p = 0; p < run.parameters(); ++p) {
      const auto got = read_parameter(run.optimizer(), {p});
      const auto main = read_parameter(twin.optimizer(), {p});
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], double(float(Half(float(main[i])))))
            << "step " << step + 1 << ", parameter " << p << ", element " << i;
    }
  }
}

template <class F>
void for_each_case_and_set(F&& f) {
  for (std::string_view set : detail::instruction_sets()) {
    detail::use_instruction_set(set);
    for (const Json& reference : cases()) {
      SCOPED_TRACE(detail::concat(set, ": ", reference.at("rule").dump(),
                                  reference.at("options").dump()));
      f(reference);
    }
  }
}

TEST(Reference, Float32FollowsTheTrajectories) {
  for_each_case_and_set(
      [](const Json& reference) { follow(reference, DType::float32); });
}

TEST(Reference, Float64FollowsTheTrajectories) {
  for_each_case_and_set(
      [](const Json& reference) { follow(reference, DType::float64); });
}

TEST(Reference, Bfloat16IsARoundedFloat32Run) {
  for_each_case_and_set(
      [](const Json& reference) { follow_twin<bfloat16>(reference); });
}

TEST(Reference, Float16IsARoundedFloat32Run) {
  for_each_case_and_set(
      [](const Json& reference) { follow_twin<float16>(reference); });
}

TEST(Reference, AllCasesAreThere) { EXPECT_EQ(cases().size(), 23u); }

}  // namespace
}  // namespace kzero::test
