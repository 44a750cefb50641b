// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Random calls, other ones on each rank where calls are local, against a model
// that is computed serially: what a parameter has is known at any time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "optim/overlap_model.hpp"
#include "support/dice.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sgd with a learning rate of 1 on sums of small integers, which every type
/// adds up exactly.
class RandomSchedule {
 public:
  RandomSchedule(std::shared_ptr<Communicator> communicator, unsigned seed)
      : ranks_(communicator->size()),
        rank_(communicator->rank()),
        seed_(seed),
        shared_{seed},
        own_{seed, unsigned(rank_), 1u} {
    const DType types[] = {DType::float64, DType::float32, DType::bfloat16};
    const int count = 1 + shared_.roll(8);
    ParameterSet set;
    for (int p = 0; p < count; ++p) {
      ParameterOptions options = typed(types[shared_.roll(3)]);
      options.chunk = p * 2 / count;
      if (shared_.one_in(4)) options.unmarked = Unmarked::keep;
      const std::int64_t size = shared_.roll(200);
      const std::string name = detail::concat("p", p);
      if (shared_.one_in(4)) {
        set.add(name, own_array(options.dtype, size),
                own_array(gradient_type(options.dtype), size), options);
      } else {
        set.add(name, {size}, options);
      }
    }
    values_.resize(std::size_t(count));
    updates_.resize(std::size_t(count));
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = 1.0};
    options.reduction = Reduction::sum;
    options.plan.bucket_bytes = 1 + shared_.roll(3000);
    partition_ = some_partition(shared_.roll(4));
    partition_.set(options.plan);
    const auto modes = all_modes();
    mode_ = modes[std::size_t(shared_.roll(int(modes.size())))];
    // Interleaved updates skip nothing, and have nothing to skip.
    finite_ = mode_.schedule == Schedule::interleaved;
    options.nonfinite = finite_ ? Nonfinite::report : Nonfinite::skip;
    optimizer_ = std::make_unique<ShardedOptimizer>(communicator, set,
                                                    mode_.in(options));
  }

  std::string name() const {
    return detail::concat("seed ", seed_, ", ", name_of(mode_), ", ",
                          name_of(partition_), ", rank ", rank_);
  }

  void run(int rounds) {
    for (unsigned round = 0; round < unsigned(rounds); ++round) {
      forward();
      backward(round);
      step(round);
      between();
      if (testing::Test::HasFailure()) return;
    }
    for (int p = 0; p < count(); ++p) read(p);
  }

 private:
  int count() const { return int(values_.size()); }

  static DType gradient_type(DType dtype) {
    return dtype == DType::bfloat16 ? DType::float32 : dtype;
  }

  /// In memory of the test's own.
  static ExternalArray own_array(DType dtype, std::int64_t size) {
    const auto memory =
        std::make_shared<std::vector<double>>(std::size_t(size) + 1);
    return {memory->data(), dtype, {size}, {}, memory};
  }

  // What a rank does with a parameter in a round, as every rank knows it.
  bool marks(unsigned round, int rank, int p) const {
    return Dice({seed_, round, unsigned(rank), unsigned(p), 2u}).roll(4) != 0;
  }
  bool overflows(unsigned round, int rank, int p) const {
    return !finite_ &&
           Dice({seed_, round, unsigned(rank), unsigned(p), 3u}).one_in(60);
  }
  double gradient(unsigned round, int rank, int p) const {
    return Dice({seed_, round, unsigned(rank), unsigned(p), 4u}).roll(7) - 3;
  }
  bool marks_any(unsigned round, int rank) const {
    for (int p = 0; p < count(); ++p)
      if (marks(round, rank, p)) return true;
    return false;
  }

  void read(int p) {
    const auto values = read_parameter(*optimizer_, {p});
    const double main = values_[std::size_t(p)];
    const double expected =
        optimizer_->parameters()[{p}].dtype == DType::bfloat16
            ? double(float(bfloat16(float(main))))
            : main;
    for (const double value : values) ASSERT_EQ(value, expected) << name();
  }

  // By its gradient alone: a parameter that is looked at is waited for.
  void fill(int p, double value) {
    visit_dtype(optimizer_->parameters()[{p}].gradient_dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      fill_view(optimizer_->gradient<T*>({p}), [&](auto) { return value; });
    });
  }

  void maybe_read() {
    if (own_.one_in(2)) read(own_.roll(count()));
  }

  void forward() {
    if (own_.one_in(3)) optimizer_->zero_gradients();
    if (own_.one_in(5)) optimizer_->wait_parameters();
    const ParameterId any{own_.roll(count())};
    if (own_.one_in(5))
      optimizer_->finish_gather(optimizer_->parameters()[any].chunk);
    for (int i = own_.roll(6); i > 0; --i) maybe_read();
    if (own_.one_in(3)) optimizer_->zero_gradients();
  }

  void backward(unsigned round) {
    std::vector<int> order(values_.size());
    for (int p = 0; p < count(); ++p) order[std::size_t(p)] = p;
    std::shuffle(order.begin(), order.end(), own_.engine());
    for (const int p : order) {
      const double value =
          overflows(round, rank_, p) ? infinity : gradient(round, rank_, p);
      fill(p, value);
    }
    std::shuffle(order.begin(), order.end(), own_.engine());
    bool marked = false;
    for (const int p : order) {
      if (!marks(round, rank_, p)) continue;
      optimizer_->mark_ready({p});
      marked = true;
      if (own_.one_in(4)) {
        EXPECT_THROW(optimizer_->mark_ready({p}), InvalidArgument);
      }
      // What is marked may have changed already.
      if (!finite_ && own_.one_in(4)) maybe_read();
    }
    if (marked && own_.one_in(3)) {
      EXPECT_THROW(optimizer_->zero_gradients(), InvalidArgument);
      EXPECT_THROW(optimizer_->group("default").set("learning_rate", 2.0),
                   InvalidArgument);
    }
  }

  void step(unsigned round) {
    // A rank that has set another rate tells all of them.
    if (Dice({seed_, round, 5u}).one_in(10) && ranks_ > 1 &&
        !marks_any(round, 0)) {
      if (rank_ == 0) optimizer_->group("default").set("learning_rate", 2.0);
      EXPECT_THROW(optimizer_->step(), InvalidArgument) << name();
      if (rank_ == 0) optimizer_->group("default").set("learning_rate", 1.0);
    }
    bool skipped = false;
    std::vector<double> sums(values_.size());
    std::vector<bool> touched(values_.size());
    for (int p = 0; p < count(); ++p)
      for (int r = 0; r < ranks_; ++r) {
        if (marks_any(round, r) && !marks(round, r, p)) continue;
        touched[std::size_t(p)] = true;
        if (overflows(round, r, p) && optimizer_->parameters()[{p}].size > 0)
          skipped = true;
        sums[std::size_t(p)] += gradient(round, r, p);
      }
    const StepReport report = optimizer_->step();
    ASSERT_EQ(report.updated(), !skipped) << name();
    if (skipped) return;
    for (std::size_t p = 0; p < values_.size(); ++p) {
      const ParameterId id{std::int64_t(p)};
      values_[p] -= sums[p];
      if (touched[p] || optimizer_->parameters()[id].unmarked == Unmarked::zero)
        ++updates_[p];
      ASSERT_EQ(optimizer_->update_count(id), updates_[p]) << name();
    }
  }

  // Collective calls.
  void between() {
    const int what = shared_.roll(12);
    if (what == 0) {
      optimizer_->broadcast_parameters(shared_.roll(ranks_));
      round_main();
    }
    if (what == 1) {
      const int p = shared_.roll(count());
      const double value = shared_.roll(50);
      round_main();  // of the others: all parameters are sent
      write_parameter(*optimizer_, {p}, [&](auto) { return value; });
      values_[std::size_t(p)] = value;
    }
    if (what == 2) {
      EXPECT_THROW(optimizer_->broadcast_parameters(ranks_), InvalidArgument);
    }
    if (what == 3) {
      optimizer_->reload_main_from_parameters();
      round_main();
    }
  }

  // Main parameters lose what 16-bit parameters do not hold.
  void round_main() {
    for (std::size_t p = 0; p < values_.size(); ++p)
      if (optimizer_->parameters()[{std::int64_t(p)}].dtype == DType::bfloat16)
        values_[p] = double(float(bfloat16(float(values_[p]))));
  }

  int ranks_;
  int rank_;
  unsigned seed_;
  Dice shared_;
  Dice own_;
  Mode mode_;
  bool finite_ = false;
  Partitioning partition_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
  std::vector<double> values_;  // of main parameters
  std::vector<std::int64_t> updates_;
};

TEST(RandomSchedules, GiveWhatASerialModelGives) {
  const auto communicator = world();
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomSchedule schedule(communicator, seed);
    SCOPED_TRACE(schedule.name());
    schedule.run(12);
    // Every rank ends, or the others would wait for it.
    std::int64_t failed = HasFailure() ? 1 : 0;
    communicator->all_reduce({&failed, 1}, Extremum::maximum, {"test"});
    if (failed != 0) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace kzero::test
