// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A function of the caller's own around each bucket's reduction: what it sees,
// what it can send or put in its place, and what ends an optimizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "comm/world.hpp"
#include "optim/mixed_model.hpp"
#include "optim/overlap_model.hpp"
#include "support/partitions.hpp"
#include "support/wrong_calls.hpp"

namespace kzero::test {
namespace {

/// What a hook has seen, in order. On any thread.
class Record {
 public:
  struct Call {
    std::int64_t index = -1;
    bool is_last = false;
    std::vector<ParameterId> parameters;
    std::vector<Range> ranges;
    DType dtype = DType::float32;
    std::int64_t size = 0;
    std::vector<std::vector<double>> gradients;  // by parameter
  };

  void add(const BucketReduction& bucket) {
    Call call;
    call.index = bucket.index();
    call.is_last = bucket.is_last();
    call.dtype = bucket.dtype();
    call.size = bucket.size();
    for (const ParameterId id : bucket.parameters()) {
      call.parameters.push_back(id);
      call.ranges.push_back(bucket.range(id));
      std::vector<double> values;
      visit_dtype(bucket.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const Range range = bucket.range(id);
        const auto all = bucket.gradients<T>();
        for (std::int64_t i = range.begin; i < range.end; ++i)
          values.push_back(static_cast<double>(all[std::size_t(i)]));
      });
      call.gradients.push_back(std::move(values));
    }
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }

  std::vector<Call> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Call> calls_;
};

class ReductionHooks : public testing::Test {
 protected:
  OptimizerOptions options_of(const Partitioning& partition, const Mode& mode,
                              ReductionHook hook) const {
    OptimizerOptions options = mode.in(mixed_options(mixed_rules()));
    partition.set(options.plan);
    options.reduction_hook = std::move(hook);
    return options;
  }

  /// Every bucket once, in order, as the plan has it.
  static void expect_calls(const std::vector<Record::Call>& calls,
                           const Plan& plan) {
    ASSERT_EQ(std::ssize(calls), plan.trained_buckets());
    for (std::int64_t b = 0; b < std::ssize(calls); ++b) {
      const Record::Call& call = calls[std::size_t(b)];
      const Bucket& bucket = plan.buckets()[std::size_t(b)];
      const Buffer& buffer = plan.buffer_of(b);
      EXPECT_EQ(call.index, b);
      EXPECT_EQ(call.is_last, b == plan.trained_buckets() - 1);
      EXPECT_EQ(call.dtype, buffer.gradient_dtype);
      EXPECT_EQ(call.size, bucket.range.size());
      ASSERT_EQ(std::ssize(call.parameters), bucket.parameters.size());
      for (std::size_t k = 0; k < call.parameters.size(); ++k) {
        const ParameterId id = call.parameters[k];
        EXPECT_EQ(id,
                  buffer.parameters[std::size_t(bucket.parameters.begin) + k]);
        EXPECT_EQ(call.ranges[k],
                  shift(plan.placement(id).in_buffer, -bucket.range.begin));
      }
    }
  }

  /// This rank's own gradients, zeros where they do not count.
  void expect_gradients(const std::vector<Record::Call>& calls,
                        const MixedModel& model, int step) const {
    const int rank = communicator->rank();
    const bool any = MixedModel::marks_any(step, rank, communicator->size());
    for (const Record::Call& call : calls)
      for (std::size_t k = 0; k < call.parameters.size(); ++k) {
        const std::int64_t p = call.parameters[k].index;
        ASSERT_EQ(std::ssize(call.gradients[k]), model.info(p).size);
        for (std::int64_t i = 0; i < model.info(p).size; ++i)
          ASSERT_EQ(call.gradients[k][std::size_t(i)],
                    any && !model.marks(step, rank, p)
                        ? 0.0
                        : rounded_to(model.info(p).gradient_dtype,
                                     model.gradient(step, rank, p, i, 0.0)))
              << model.info(p).name;
      }
  }

  /// With this hook, in every way, the bits of a serial training. hook: made
  /// for each optimizer.
  void expect_serial_bits(const std::function<ReductionHook()>& hook,
                          const std::vector<MixedParameter>& parameters,
                          const std::vector<MixedParameter>& as,
                          const std::vector<GatherMode>& gathers) const {
    constexpr int steps = 4;
    const MixedModel serial_model(as, Feedback::none);
    SerialModel serial(serial_model, mixed_rules(), communicator->size());
    for (int step = 0; step < steps; ++step) serial.step(step);
    for (const auto& [partition, mode] : all_ways()) {
      if (std::ranges::count(gathers, mode.gather) == 0) continue;
      SCOPED_TRACE(name_of(Way{partition, mode}));
      const MixedModel model(parameters, Feedback::none);
      ShardedOptimizer optimizer(communicator, model.set(),
                                 options_of(partition, mode, hook()));
      model.write_start(optimizer);
      std::mt19937 random(unsigned(communicator->rank()));
      const Part whole[] = {{model}};
      for (int step = 0; step < steps; ++step) {
        optimizer.wait_parameters();
        pass(optimizer, whole, step, random);
        EXPECT_TRUE(optimizer.step().updated());
      }
      expect_serial(optimizer, whole[0], serial);
      if (failed_on_any_rank()) return;
    }
  }

  const std::vector<GatherMode> both = {GatherMode::at_step,
                                        GatherMode::overlapped};
  const std::shared_ptr<Communicator> communicator = world();
};

TEST_F(ReductionHooks, SeeEveryBucketOnceAStep) {
  for (const auto& [partition, mode] : all_ways()) {
    SCOPED_TRACE(name_of(Way{partition, mode}));
    const MixedModel model(mixed_parameters(), Feedback::none);
    Record record;
    ShardedOptimizer optimizer(
        communicator, model.set(),
        options_of(partition, mode, [&](BucketReduction& bucket) {
          record.add(bucket);
          return bucket.start();
        }));
    model.write_start(optimizer);
    EXPECT_TRUE(record.take().empty());
    std::mt19937 random(unsigned(communicator->rank()));
    const Part whole[] = {{model}};
    for (int step = 0; step < 4; ++step) {
      pass(optimizer, whole, step, random);
      optimizer.step();
      const auto calls = record.take();
      expect_calls(calls, optimizer.plan());
      expect_gradients(calls, model, step);
    }
    // Of the buckets that there are.
    ParameterSet more;
    more.add("more", {2000});
    more.add("frozen", {30}, {.frozen = true});
    optimizer.add_group("added", more, Lion{});
    optimizer.step();
    expect_calls(record.take(), optimizer.plan());
    optimizer.rebuild_buckets();
    EXPECT_TRUE(record.take().empty());
    optimizer.step();
    expect_calls(record.take(), optimizer.plan());
    if (failed_on_any_rank()) return;
  }
}

TEST_F(ReductionHooks, ThatStartGiveTheBitsOfNone) {
  expect_serial_bits(
      [] { return [](BucketReduction& bucket) { return bucket.start(); }; },
      mixed_parameters(), mixed_parameters(), both);
}

/// Sends bfloat16 in the place of float32.
class Rounded {
 public:
  ReductionTicket operator()(BucketReduction& bucket) {
    EXPECT_EQ(bucket.dtype(), DType::float32);
    auto& memory = (*memory_)[bucket.index()];
    if (!memory) memory = bucket.communicator().allocate(2 * bucket.size());
    auto* const sent = static_cast<bfloat16*>(memory.get());
    std::ranges::transform(bucket.gradients<float>(), sent,
                           [](float each) { return bfloat16(each); });
    return bucket.start(sent, DType::bfloat16);
  }

 private:
  using Memory = std::map<std::int64_t, std::shared_ptr<void>>;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

std::vector<MixedParameter> float32_parameters(
    std::optional<DType> gradient_dtype) {
  std::vector<MixedParameter> all;
  for (const std::int64_t size : {300, 0, 5000, 71, 2100, 1}) {
    ParameterOptions kind;
    kind.gradient_dtype = gradient_dtype;
    if (all.size() % 2 == 1) kind.group = "momentum";
    all.push_back({detail::concat("p", all.size()), {size}, kind});
  }
  return all;
}

TEST_F(ReductionHooks, CanSendOtherTypes) {
  expect_serial_bits([] { return Rounded(); }, float32_parameters({}),
                     float32_parameters(DType::bfloat16), both);
}

TEST_F(ReductionHooks, CanSendHalfTheBytes) {
  const int ranks = communicator->size();
  for (const Partitioning& partition : all_partitions()) {
    const MixedModel model(float32_parameters({}));
    ShardedOptimizer optimizer(communicator, model.set(),
                               options_of(partition, {}, Rounded()));
    std::int64_t elements = 0;
    for (const Bucket& bucket : optimizer.plan().buckets())
      elements += bucket.range.size();
    EXPECT_GT(elements, 7000);
    for (int step = 0; step < 2; ++step) {
      std::int64_t sent = optimizer.step().bytes_sent();
      communicator->all_reduce_sum(std::span(&sent, 1), {"test"});
      EXPECT_EQ(sent, (ranks - 1) * elements * (2 + 4));
    }
  }
}

TEST_F(ReductionHooks, MayChangeGradients) {
  ParameterSet set;
  set.add("w", {100});
  OptimizerOptions options;
  options.rule = Sgd{.learning_rate = 1.0};
  options.reduction_hook = [](BucketReduction& bucket) {
    for (float& each : bucket.gradients<float>()) each *= 4.0f;
    return bucket.start();
  };
  ShardedOptimizer optimizer(communicator, set, options);
  fill_gradient(optimizer, {0}, [](auto) { return 0.5; });
  optimizer.step();
  EXPECT_EQ(read_parameter(optimizer, {0}), std::vector<double>(100, -2.0));
}

/// All ranks' gradients of a bucket, in pieces of so many elements.
template <class T>
class Gathered final : public PendingReduction {
 public:
  Gathered(const BucketReduction& bucket, std::int64_t piece)
      : shard_(bucket.shards().range(bucket.communicator().rank())),
        size_(bucket.size()),
        piece_(piece),
        all_(std::size_t(size_ * bucket.communicator().size())) {
    bucket.communicator().all_gather(bucket.gradients<T>().data(),
                                     size_ * std::int64_t{sizeof(T)},
                                     all_.data(), {"a reduction of the test"});
    parts_.resize(std::size_t(bucket.communicator().size()));
  }

  const Contributions* next() override {
    if (begin_ == shard_.size()) return nullptr;
    given_.range = {begin_, std::min(begin_ + piece_, shard_.size())};
    given_.dtype = dtype_of<T>;
    for (std::size_t r = 0; r < parts_.size(); ++r)
      parts_[r] = {
          all_.data() + std::int64_t(r) * size_ + shard_.begin + begin_, int(r),
          1};
    given_.parts = parts_;
    begin_ = given_.range.end;
    return &given_;
  }
  bool test() override { return true; }
  void release() noexcept override { delete this; }

 private:
  Range shard_;
  std::int64_t size_;
  std::int64_t piece_;
  std::vector<T> all_;
  std::vector<Contribution> parts_;
  Contributions given_;
  std::int64_t begin_ = 0;
};

ReductionTicket gather(const BucketReduction& bucket) {
  ReductionTicket ticket;
  visit_dtype(bucket.dtype(), [&](auto type) {
    ticket.reset(new Gathered<typename decltype(type)::type>(bucket, 2048));
  });
  return ticket;
}

TEST_F(ReductionHooks, CanReduceInAnotherWay) {
  // A rank that waits in the hook makes no calls that others wait for in reads.
  expect_serial_bits([] { return gather; }, mixed_parameters(),
                     mixed_parameters(), {GatherMode::at_step});
}

/// Gives what it is told to, zeros of so many ranks.
class Pieces final : public PendingReduction {
 public:
  /// A piece that begins below 0 is thrown.
  Pieces(const BucketReduction& bucket, std::vector<Range> pieces, int ranks)
      : zeros_(std::size_t(bucket.size())), pieces_(std::move(pieces)) {
    for (int rank = 0; rank < ranks; ++rank)
      parts_.push_back({zeros_.data(), rank, 1});
    given_.parts = parts_;
  }
  const Contributions* next() override {
    if (next_ == pieces_.size()) return nullptr;
    given_.range = pieces_[next_++];
    if (given_.range.begin < 0) throw InvalidArgument("the ticket's own words");
    return &given_;
  }
  bool test() override { return true; }
  void release() noexcept override { delete this; }

 private:
  std::vector<float> zeros_;
  std::vector<Range> pieces_;
  std::vector<Contribution> parts_;
  Contributions given_;
  std::size_t next_ = 0;
};

struct Fault {
  std::string name;
  ReductionHook hook;  // of bucket 1
  std::string says;
};

std::vector<Fault> faults() {
  const int ranks = world_size();
  const auto pieces = [=](std::vector<Range> ranges, int more = 0) {
    return [=](BucketReduction& bucket) {
      return ReductionTicket(
          std::make_unique<Pieces>(bucket, ranges, ranks + more).release());
    };
  };
  return {
      {"throws",
       [](BucketReduction&) -> ReductionTicket {
         throw std::runtime_error("the hook's own words");
       },
       "the hook's own words"},
      {"throws a number", [](BucketReduction&) -> ReductionTicket { throw 7; },
       "no std::exception"},
      {"returns null", [](BucketReduction&) { return ReductionTicket(); },
       "it returned no ticket"},
      {"starts twice",
       [](BucketReduction& bucket) {
         const ReductionTicket first = bucket.start();
         return bucket.start();
       },
       "started twice"},
      {"asks for another type",
       [](BucketReduction& bucket) {
         bucket.gradients<double>();
         return bucket.start();
       },
       "float64"},
      {"asks for another bucket's parameter",
       [](BucketReduction& bucket) {
         bucket.range({bucket.parameters()[0].index == 0 ? 1 : 0});
         return bucket.start();
       },
       "is not in bucket 1"},
      {"its ticket throws", pieces({{-1, 0}}), "the ticket's own words"},
      {"gives nothing", pieces({}), "it ended after 0 elements"},
      {"gives too little", pieces({{0, 2048}}), "it ended after 2048 elements"},
      {"begins behind the beginning", pieces({{2048, 4096}}), "[2048, 4096)"},
      {"gives a piece twice", pieces({{0, 2048}, {0, 2048}}), "[0, 2048)"},
      {"ends within a tile", pieces({{0, 2000}}), "[0, 2000)"},
      {"gives an empty piece", pieces({{0, 0}}), "[0, 0)"},
      {"gives too much", pieces({{0, 2048 * 1000}}), "[0, 2048000)"},
      {"gives no parts", pieces({{0, 2048}}, -ranks), "in 0 parts"},
      {"leaves out a rank", pieces({{0, 2048}}, -1),
       detail::concat("in ", ranks - 1, " parts")},
      {"gives a rank too many", pieces({{0, 2048}}, 1),
       detail::concat("in ", ranks + 1, " parts")}};
}

TEST_F(ReductionHooks, ThatAreWrongEndTheOptimizer) {
  const std::vector<Mode> modes = {
      {},
      {.schedule = Schedule::after_backward},
      {.schedule = Schedule::after_backward, .progress = Progress::thread},
      {.schedule = Schedule::interleaved, .progress = Progress::thread}};
  for (const Fault& fault : faults())
    for (const Mode& mode : modes) {
      SCOPED_TRACE(fault.name + ", " + name_of(mode));
      // Shards of three tiles and a half.
      const std::int64_t size = 7168 * communicator->size();
      ParameterSet set;
      for (int p = 0; p < 3; ++p) set.add(detail::concat("p", p), {size});
      OptimizerOptions options = mode.in({});
      options.plan.bucket_bytes = 1;
      options.reduction_hook = [&](BucketReduction& bucket) {
        return bucket.index() == 1 ? fault.hook(bucket) : bucket.start();
      };
      ShardedOptimizer optimizer(world(), set, options);
      const auto train = [&] {
        for (std::int64_t p = 2; p >= 0; --p) optimizer.mark_ready({p});
        optimizer.step();
      };
      const auto message = message_of<CommunicationError>(train);
      EXPECT_NE(message.find("reduction hook, bucket 1: "), std::string::npos)
          << message;
      EXPECT_NE(message.find(fault.says), std::string::npos) << message;
      EXPECT_THROW(optimizer.step(), CommunicationError);
      EXPECT_THROW(optimizer.mark_ready({0}), CommunicationError);
      EXPECT_THROW(optimizer.consolidate(0), CommunicationError);
      EXPECT_FALSE(optimizer.describe().empty());
      if (failed_on_any_rank()) return;
    }
}

// One function object is called from the beginning to the end.
TEST_F(ReductionHooks, KeepTheirState) {
  struct Counting {
    std::shared_ptr<std::vector<int>> seen;
    int calls = 0;
    ReductionTicket operator()(BucketReduction& bucket) {
      seen->push_back(++calls);
      return bucket.start();
    }
  };
  const auto seen = std::make_shared<std::vector<int>>();
  ParameterSet set;
  set.add("w", {1000});
  OptimizerOptions options;
  options.reduction_hook = Counting{seen};
  ShardedOptimizer optimizer(communicator, set, options);
  optimizer.mark_ready({0});
  optimizer.step();
  ParameterSet more;
  more.add("more", {10});
  optimizer.add_group("more", more, Sgd{});
  optimizer.step();
  optimizer.rebuild_buckets();
  optimizer.step();
  EXPECT_GE(seen->size(), 4u);
  for (std::size_t i = 0; i < seen->size(); ++i)
    EXPECT_EQ((*seen)[i], int(i) + 1);
}

// The others hear of it by the timeout.
TEST_F(ReductionHooks, ThatThrowOnOneRankEndTheOthersToo) {
  const auto impatient =
      make_communicator(MPI_COMM_WORLD, {.timeout = std::chrono::seconds(2)});
  const bool throws = impatient->rank() == impatient->size() - 1;
  ParameterSet set;
  set.add("w", {1000});
  OptimizerOptions options;
  options.reduction_hook = [&](BucketReduction& bucket) {
    if (throws) throw std::runtime_error("on this rank");
    return bucket.start();
  };
  ShardedOptimizer optimizer(impatient, set, options);
  EXPECT_THROW(optimizer.step(), CommunicationError);
  EXPECT_THROW(optimizer.step(), CommunicationError);
  meet(MPI_COMM_WORLD);
}

TEST_F(ReductionHooks, OnSomeRanksAreRefused) {
  if (communicator->size() == 1) return;
  for (const int with : {0, communicator->size() - 1}) {
    OptimizerOptions options;
    if (communicator->rank() == with)
      options.reduction_hook = [](BucketReduction& bucket) {
        return bucket.start();
      };
    ParameterSet set;
    set.add("w", {3});
    expect_refused({{"a hook on one rank",
                     [&] { ShardedOptimizer(communicator, set, options); },
                     {"reduction_hook", "a function", "none"},
                     Found::collective}});
  }
}

}  // namespace
}  // namespace kzero::test
