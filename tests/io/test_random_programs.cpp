// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Random programs of calls, local ones other on each rank, against a serial
// model: what every parameter, its state and its count are is known at any
// time. Every call follows every other one.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "io/scratch_folder.hpp"
#include "io/serial_model.hpp"
#include "optim/overlap_model.hpp"
#include "support/dice.hpp"
#include "support/own_memory.hpp"
#include "support/partitions.hpp"

namespace kzero::test {
namespace {

/// The first ten are counted in pairs.
enum class Call {
  mark,
  step,
  skip,
  add_group,
  change_rate,
  save,
  load,
  rebuild,
  consolidate,
  join,
  write,
  zero,
  read
};
constexpr int counted_calls = 10;
constexpr int all_calls = 13;
constexpr const char* call_names[] = {
    "mark",  "step", "skip",    "add_group",   "change_rate",
    "save",  "load", "rebuild", "consolidate", "join",
    "write", "zero", "read"};

/// Whether a call is refused after marks: then nothing may change.
bool is_refused_after_marks(Call call) {
  return call != Call::mark && call != Call::step && call != Call::skip &&
         call != Call::read;
}

/// How often each call came straight after each other one.
class Pairs {
 public:
  void count(Call first, Call second) {
    if (int(first) < counted_calls && int(second) < counted_calls)
      ++counts_[std::size_t(first)][std::size_t(second)];
  }
  /// Those that never came.
  std::string missing() const {
    std::string text;
    for (int a = 0; a < counted_calls; ++a)
      for (int b = 0; b < counted_calls; ++b)
        if (counts_[std::size_t(a)][std::size_t(b)] == 0)
          text += detail::concat(" ", call_names[a], "->", call_names[b]);
    return text;
  }

 private:
  std::array<std::array<int, counted_calls>, counted_calls> counts_ = {};
};

/// What a gradient of one rank holds.
struct Gradient {
  enum class Kind { unknown, zeros, numbers, infinite };
  Kind kind = Kind::zeros;
  unsigned salt = 0;

  /// A small integer, but for one element of an infinite one.
  double at(std::int64_t i) const {
    if (kind == Kind::infinite && i == 0)
      return std::numeric_limits<double>::infinity();
    if (kind == Kind::zeros) return 0.0;
    return double((unsigned(i) * 5 + salt + unsigned(i) / 64) % 7) - 3.0;
  }
};

/// By rank, then by parameter.
template <class T>
using ByRank = std::vector<std::vector<T>>;

/// Passes buckets on, and looks at the order in which they come. The gradients
/// of every second one go out in another type, if they are float32.
class Hook {
 public:
  ReductionHook function() {
    return [this](BucketReduction& bucket) { return reduce(bucket); };
  }
  /// What was started is not gone on with.
  bool in_order() const { return in_order_; }

 private:
  ReductionTicket reduce(BucketReduction& bucket) {
    if (bucket.index() != next_ && bucket.index() != 0) in_order_ = false;
    next_ = bucket.is_last() ? 0 : bucket.index() + 1;
    if (bucket.dtype() != DType::float32 || bucket.index() % 2 != 0)
      return bucket.start();
    const auto values = bucket.gradients<float>();
    auto& room = rooms_[bucket.index()];
    room = bucket.communicator().allocate(std::max<std::int64_t>(
        bucket.size() * std::int64_t(sizeof(bfloat16)), 1));
    std::transform(values.begin(), values.end(),
                   static_cast<bfloat16*>(room.get()),
                   [](float value) { return bfloat16(value); });
    return bucket.start(room.get(), DType::bfloat16);
  }

  std::atomic<bool> in_order_ = true;
  std::int64_t next_ = 0;
  std::map<std::int64_t, std::shared_ptr<void>> rooms_;
};

/// Another optimizer, which joins with the first: Sgd with a rate of 1 on what
/// ranks that step add up.
class Companion {
 public:
  Companion(const std::shared_ptr<Communicator>& communicator, Dice& shared) {
    ParameterSet set;
    set.add("other", {shared.roll(300)});
    OptimizerOptions options;
    options.rule = Sgd{.learning_rate = 1.0};
    options.reduction = Reduction::sum;
    const auto modes = all_modes();
    const Mode mode = modes[std::size_t(shared.roll(int(modes.size())))];
    optimizer_ =
        std::make_unique<ShardedOptimizer>(communicator, set, mode.in(options));
  }

  ShardedOptimizer& optimizer() { return *optimizer_; }

  void step(const std::vector<bool>& stepping) {
    const int rank = optimizer_->communicator()->rank();
    for (int r = 0; r < int(stepping.size()); ++r)
      if (stepping[std::size_t(r)]) value_ -= r + 1;
    if (!stepping[std::size_t(rank)]) return;
    fill_view(optimizer_->gradient<float*>({0}),
              [&](std::int64_t) { return rank + 1; });
    if (rank == 0) optimizer_->mark_ready({0});
    optimizer_->step();
  }

  bool is_right() {
    const auto values = read_parameter(*optimizer_, {0});
    return std::ranges::all_of(values, [&](double v) { return v == value_; });
  }

 private:
  std::unique_ptr<ShardedOptimizer> optimizer_;
  double value_ = 0.0;
};

class Program {
 public:
  Program(std::shared_ptr<Communicator> communicator, unsigned seed,
          const ScratchFolder& folder, Pairs& pairs)
      : communicator_(std::move(communicator)),
        ranks_(communicator_->size()),
        rank_(communicator_->rank()),
        seed_(seed),
        folder_(folder),
        pairs_(pairs),
        shared_{seed},
        gradients_(std::size_t(ranks_)),
        marked_(std::size_t(ranks_)),
        order_(std::size_t(ranks_)),
        last_order_(std::size_t(ranks_)) {
    ParameterSet set;
    for (const char* group : {"default", "second"})
      model_.groups[group] = some_group();
    const int count = 1 + shared_.roll(6);
    for (int p = 0; p < count; ++p)
      declare(set, shared_.one_in(3) ? "second" : "default", 0);
    make_optimizer(set);
  }

  ~Program() {
    if (rank_ != 0) return;
    for (const std::string& file : files_)
      std::filesystem::remove(folder_ / file);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string name() const {
    return detail::concat("seed ", seed_, ", rank ", rank_, ":", log_);
  }

  /// Empty when nothing was wrong.
  const std::string& failure() const { return failure_; }

  void run(int calls) {
    Call before = Call::read;  // one that is not counted
    for (int i = 0; i < calls; ++i) {
      const bool marked = any_marked();
      Call call = Call(shared_.roll(all_calls));
      if (marked && shared_.one_in(2))
        call = Call(shared_.roll(3));  // mark, step, skip
      const bool done = perform(call);
      if (!done) {
        before = Call::read;
        continue;
      }
      pairs_.count(before, call);
      if (!marked || !is_refused_after_marks(call)) before = call;
    }
    if (any_marked()) step(everyone());
    for (int p = 0; p < model_.size(); ++p) read(p);
    check_everything();
    for (const auto& [p, own] : own_)
      expect(own.gaps_are_whole(), "memory between elements was written");
    expect(hook_.in_order(), "the hook saw buckets in another order");
  }

 private:
  SerialGroup some_group() {
    return {SerialRule(shared_.roll(4)), std::exp2(-shared_.roll(4))};
  }

  Dice dice(unsigned rank, unsigned purpose) const {
    return Dice({seed_, calls_, rank, purpose});
  }

  /// first: of the set that is being declared.
  void declare(ParameterSet& set, const std::string& group, int first) {
    constexpr DType types[][2] = {
        {DType::float32, DType::float32},  {DType::float32, DType::bfloat16},
        {DType::bfloat16, DType::float32}, {DType::bfloat16, DType::bfloat16},
        {DType::float64, DType::float64},  {DType::float64, DType::float32}};
    const int p = model_.size();
    const auto& type = types[shared_.roll(6)];
    SerialParameter of;
    of.name = detail::concat("p", p);
    of.group = group;
    const int sizes[] = {0, 1, shared_.roll(64), shared_.roll(200),
                         shared_.roll(700)};
    of.size = p == 0 ? 200 : sizes[shared_.roll(5)];
    of.dtype = type[0];
    of.gradient_dtype = type[1];
    of.keep = shared_.one_in(4);
    of.frozen = p > 0 && shared_.one_in(10);
    of.storage = p;
    int chunk = shared_.roll(3);
    const bool external = shared_.one_in(4);
    const Order strides = shared_.one_in(2) ? Order::right : Order::gaps;
    ParameterOptions options;
    if (const int other = p > first ? first + shared_.roll(p - first) : p;
        shared_.one_in(6) && other < p) {
      const std::string name = of.name;
      of = model_[model_[other].storage];
      options.tied_to = of.name;
      of.name = name;
      chunk = chunks_[std::size_t(other)];
    }
    options.dtype = of.dtype;
    options.gradient_dtype = of.gradient_dtype;
    options.group = of.group;
    options.chunk = chunk;
    options.unmarked = of.keep ? Unmarked::keep : Unmarked::zero;
    options.frozen = of.frozen;
    const auto start = [p](std::int64_t i) { return double(i % 9 + p); };
    if (of.storage == p && external) {
      const Own own({of.size}, strides, of.dtype, of.gradient_dtype);
      own.value.fill(start);
      own.add_to(set, of.name, options);
      own_.emplace(p, own);
    } else {
      set.add(of.name, {of.size}, options);
    }
    if (of.storage == p) {
      of.main.assign(std::size_t(of.size), 0.0);
      if (external)
        for (std::int64_t i = 0; i < of.size; ++i)
          of.main[std::size_t(i)] = start(i);
      for (auto& array : of.state) array.assign(std::size_t(of.size), 0.0);
    } else {
      of.main.clear();
      for (auto& array : of.state) array.clear();
    }
    model_.parameters.push_back(of);
    chunks_.push_back(chunk);
    for (int r = 0; r < ranks_; ++r) {
      gradients_[std::size_t(r)].emplace_back();
      marked_[std::size_t(r)].push_back(false);
    }
  }

  void make_optimizer(const ParameterSet& set) {
    OptimizerOptions options;
    for (const auto& [name, group] : model_.groups)
      options.groups[name] = rule_of(group.rule, group.rate);
    const Reduction reductions[] = {Reduction::mean, Reduction::sum,
                                    Reduction::divide_by(2)};
    options.reduction = reductions[shared_.roll(3)];
    options.plan.bucket_bytes = 1 + shared_.roll(4000);
    const auto partition = some_partition(shared_.roll(4));
    partition.set(options.plan);
    if (shared_.one_in(4)) {
      for (int p = 0; p < model_.size(); ++p) options.plan.order.push_back({p});
      std::shuffle(options.plan.order.begin(), options.plan.order.end(),
                   shared_.engine());
    }
    if (shared_.one_in(4)) options.reduction_hook = hook_.function();
    const auto modes = all_modes();
    const Mode mode = modes[std::size_t(shared_.roll(int(modes.size())))];
    finite_ = mode.schedule == Schedule::interleaved;
    options.nonfinite = finite_ ? Nonfinite::report : Nonfinite::skip;
    reduction_ = options.reduction;
    log_ += detail::concat("\n(", name_of(mode), ", ", name_of(partition), ", ",
                           options.plan.bucket_bytes, " bytes, ", model_.size(),
                           " parameters)");
    optimizer_ = std::make_unique<ShardedOptimizer>(communicator_, set,
                                                    mode.in(options));
  }

  std::vector<bool> everyone() const {
    return std::vector<bool>(std::size_t(ranks_), true);
  }
  bool any_marked(int rank) const { return !order_[std::size_t(rank)].empty(); }
  bool any_marked() const {
    return std::ranges::any_of(order_,
                               [](const auto& o) { return !o.empty(); });
  }
  /// Any name of the storage.
  bool is_marked(int rank, int storage) const {
    for (int p = 0; p < model_.size(); ++p)
      if (model_[p].storage == storage &&
          marked_[std::size_t(rank)][std::size_t(p)])
        return true;
    return false;
  }
  Gradient& gradient(int rank, int p) {
    return gradients_[std::size_t(rank)][std::size_t(p)];
  }
  void set_gradients(int rank, Gradient::Kind kind) {
    for (Gradient& each : gradients_[std::size_t(rank)]) each = {kind};
  }

  /// Marks are used up.
  void take_marks() {
    for (std::size_t r = 0; r < std::size_t(ranks_); ++r) {
      if (!order_[r].empty()) last_order_[r] = std::move(order_[r]);
      order_[r].clear();
      std::fill(marked_[r].begin(), marked_[r].end(), false);
    }
  }

  void expect(bool right, std::string_view what) {
    if (!right && failure_.empty())
      failure_ = detail::concat(what, " in ", name());
  }
  template <class E, class F>
  void expect_throw(const std::string& what, F&& f) {
    try {
      f();
      expect(false, what + " threw nothing");
    } catch (const E&) {
    } catch (const CommunicationError&) {
      throw;
    } catch (const std::exception& error) {
      expect(false, what + " threw " + error.what());
    }
  }

  std::vector<double> values_here(int storage) {
    const ParameterId id{storage};
    const auto own = own_.find(storage);
    if (own == own_.end()) return read_parameter(*optimizer_, id);
    optimizer_->wait_parameter(id);
    return own->second.value.values();
  }

  void read(int p) {
    const int storage = model_[p].storage;
    if (is_marked(rank_, storage)) return;
    const auto values = values_here(storage);
    const SerialParameter& of = model_[storage];
    if (values.size() != of.main.size())
      return expect(false, of.name + " has another size");
    for (std::size_t i = 0; i < of.main.size(); ++i)
      if (values[i] != of.value(i))
        return expect(false, detail::concat(of.name, "[", i, "] is ", values[i],
                                            ", expected ", of.value(i)));
  }

  void check_counts() {
    expect(optimizer_->steps() == model_.steps, "steps() differs");
    for (int p = 0; p < model_.size(); ++p)
      expect(optimizer_->update_count({p}) == model_[model_[p].storage].updates,
             model_[p].name + ": update_count() differs");
    for (const auto& [name, group] : model_.groups)
      expect(optimizer_->group(name).get("learning_rate") == group.rate,
             "the rate of " + name + " differs");
    std::vector<int> seen;
    for (const ParameterId id : optimizer_->readiness_order())
      seen.push_back(int(id.index));
    expect(seen == last_order_[std::size_t(rank_)],
           "readiness_order() differs");
  }

  void check_array(const ParameterState& saved, const std::string& array,
                   const SerialParameter& of,
                   const std::vector<double>& expected) {
    if (saved.find(array) == nullptr) {
      expect(false, of.name + " has no array " + array);
      return;
    }
    const auto compare = [&](auto type) {
      using T = typename decltype(type)::type;
      const auto got = saved.elements<T>(array);
      expect(got.size() == expected.size(), array + " has another size");
      for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
        if (double(got[i]) != expected[i]) {
          expect(false,
                 detail::concat(array, " of ", of.name, "[", i, "] is ",
                                double(got[i]), ", expected ", expected[i]));
          return;
        }
    };
    visit_dtype(saved.find(array)->dtype, compare);
  }

  void check_state(const OptimizerState& state) {
    expect(state.steps == model_.steps, "steps of the state differ");
    expect(state.skipped_total == model_.skipped_total &&
               state.skipped_in_a_row == model_.skipped_in_a_row,
           "skipped steps of the state differ");
    expect(state.groups.size() == model_.groups.size(),
           "the state has other groups");
    for (const auto& [name, group] : model_.groups) {
      const GroupState& saved = state.group(name);
      expect(saved.rule == rule_of(group.rule, 1.0).name() &&
                 saved.hyperparameters.at("learning_rate") == group.rate,
             "group " + name + " of the state differs");
    }
    std::size_t count = 0;
    for (int p = 0; p < model_.size(); ++p) {
      if (!model_.is_storage(p)) continue;
      ++count;
      const SerialParameter& of = model_[p];
      const ParameterState& saved = state.parameter(of.name);
      expect(saved.update_count == of.updates, of.name + " has another count");
      expect(saved.group == of.group, of.name + " is in another group");
      std::vector<double> values;
      for (std::size_t i = 0; i < of.main.size(); ++i)
        values.push_back(of.value(i));
      check_array(saved, "value", of, values);
      if (of.frozen) continue;
      if (of.dtype == DType::bfloat16) check_array(saved, "main", of, of.main);
      const auto names = state_names_of(model_.groups.at(of.group).rule);
      for (std::size_t k = 0; k < names.size(); ++k)
        check_array(saved, names[k], of, of.state[k]);
    }
    expect(state.parameters.size() == count, "the state has other parameters");
  }

  void check_everything() {
    const auto state = optimizer_->consolidate(0);
    if (state) check_state(*state);
    check_counts();
  }

  void check_average(int p, const std::vector<double>& expected) {
    visit_dtype(main_dtype(model_[p].dtype), [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (sizeof(T) >= 4) {
        const auto views = optimizer_->averaged_gradient<T>({p});
        const auto segments = optimizer_->segments({p});
        for (std::size_t k = 0; k < views.size(); ++k)
          for (std::int64_t i = 0; i < segments[k].in_parameter.size(); ++i)
            expect(
                double(views[k](std::size_t(i))) ==
                    expected[std::size_t(segments[k].in_parameter.begin + i)],
                "averaged_gradient() differs");
      }
    });
  }

  void expect_no_average() {
    visit_dtype(main_dtype(model_[0].dtype), [&](auto type) {
      using T = typename decltype(type)::type;
      expect_throw<InvalidArgument>(
          "averaged_gradient", [&] { optimizer_->averaged_gradient<T>({0}); });
    });
  }

  /// False when the call was not what its name says.
  bool perform(Call call) {
    ++calls_;
    log_ += detail::concat(' ', call_names[int(call)]);
    if (any_marked() && is_refused_after_marks(call)) {
      log_ += '!';
      refuse_after_marks(call);
      return true;
    }
    // What is not marked yet is not lost by other calls.
    if (shared_.one_in(4)) fill(everyone());
    switch (call) {
      case Call::mark:
        return mark(everyone());
      case Call::step:
        if (!any_marked()) fill(everyone());
        step(everyone());
        return true;
      case Call::skip:
        return skip(everyone());
      case Call::add_group:
        add_group();
        return true;
      case Call::change_rate:
        change_rate(everyone());
        return true;
      case Call::save:
        save();
        return true;
      case Call::load:
        return load(shared_.one_in(4));
      case Call::rebuild:
        return rebuild();
      case Call::consolidate:
        consolidate();
        return true;
      case Call::join:
        join();
        return true;
      case Call::write:
        write();
        return true;
      case Call::zero:
        zero();
        return true;
      case Call::read:
        read_some();
        return true;
    }
    return false;
  }

  void refuse_after_marks(Call call) {
    const bool here = any_marked(rank_);
    const std::string what = call_names[int(call)];
    if (call == Call::change_rate || call == Call::zero) {
      if (!here) return;
      expect_throw<InvalidArgument>(what, [&] {
        if (call == Call::zero)
          optimizer_->zero_gradients();
        else
          optimizer_->group("default").set("learning_rate", 4.0);
      });
      return;
    }
    const int root = shared_.roll(ranks_);
    expect_throw<InvalidArgument>(what, [&] {
      switch (call) {
        case Call::add_group: {
          ParameterSet set;
          set.add("new", {5});
          optimizer_->add_group("new", set, Sgd{});
          break;
        }
        case Call::save:
          save_checkpoint(*optimizer_, folder_ / "refused");
          break;
        case Call::load:
          load_checkpoint(*optimizer_, folder_ / "refused");
          break;
        case Call::rebuild:
          optimizer_->rebuild_buckets();
          break;
        case Call::consolidate:
          optimizer_->consolidate(root);
          break;
        case Call::join: {
          const Join join(*optimizer_);
          break;
        }
        default:
          optimizer_->broadcast_parameters(root);
      }
    });
  }

  /// New gradients, on the ranks that step: where there are none, and some.
  void fill(const std::vector<bool>& stepping) {
    for (int r = 0; r < ranks_; ++r) {
      Dice own = dice(unsigned(r), 1);
      for (int p = 0; p < model_.size(); ++p) {
        const bool wanted =
            own.one_in(2) || gradient(r, p).kind == Gradient::Kind::unknown;
        const auto salt = unsigned(own.roll(1000));
        if (wanted && stepping[std::size_t(r)] && model_.is_trained(p) &&
            !is_marked(r, p))
          put(r, p, {Gradient::Kind::numbers, salt});
      }
    }
  }

  void put(int rank, int p, Gradient numbers) {
    gradient(rank, p) = numbers;
    if (rank != rank_) return;
    const auto at = [&](std::int64_t i) { return numbers.at(i); };
    const auto own = own_.find(p);
    if (own != own_.end()) return own->second.gradient.fill(at);
    visit_dtype(model_[p].gradient_dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      fill_view(optimizer_->gradient<T*>({p}), at);
    });
  }

  void mark_one(int rank, int p) {
    marked_[std::size_t(rank)][std::size_t(p)] = true;
    order_[std::size_t(rank)].push_back(p);
    if (rank == rank_) optimizer_->mark_ready({p});
  }

  std::vector<int> markable(int rank) const {
    std::vector<int> all;
    for (int p = 0; p < model_.size(); ++p)
      if (!model_[p].frozen && !marked_[std::size_t(rank)][std::size_t(p)])
        all.push_back(p);
    return all;
  }

  /// False where there was nothing left to mark.
  bool mark(const std::vector<bool>& stepping) {
    fill(stepping);
    bool any = false;
    for (int r = 0; r < ranks_; ++r) {
      if (!stepping[std::size_t(r)]) continue;
      Dice own = dice(unsigned(r), 2);
      std::vector<int> names = markable(r);
      std::shuffle(names.begin(), names.end(), own.engine());
      const int most = int(names.size());
      const int counts[] = {most, own.roll(most + 1), own.roll(2), 0};
      int count = counts[own.roll(4)];
      if (!any && r == ranks_ - 1) count = std::max(count, 1);
      names.resize(std::size_t(std::min(count, most)));
      for (const int p : names) mark_one(r, p);
      any = any || !names.empty();
      if (r != rank_) continue;
      const auto& mine = order_[std::size_t(r)];
      if (!mine.empty() && own.one_in(3))
        expect_throw<InvalidArgument>(
            "a second mark", [&] { optimizer_->mark_ready({mine.front()}); });
      if (own.one_in(3)) read(own.roll(model_.size()));
    }
    return any;
  }

  /// Infinite on one rank. False where that cannot be.
  bool skip(const std::vector<bool>& stepping, bool divide_by_all = false) {
    if (finite_) {
      if (!any_marked()) fill(stepping);
      step(stepping, divide_by_all);
      return false;
    }
    fill(stepping);
    std::vector<std::pair<int, int>> choices;
    for (int r = 0; r < ranks_; ++r)
      for (int p = 0; p < model_.size(); ++p)
        if (stepping[std::size_t(r)] && model_.is_trained(p) &&
            model_[p].size > 0 && !is_marked(r, p))
          choices.emplace_back(r, p);
    const int choice = shared_.roll(1000);
    const bool marks = shared_.one_in(2);
    if (!choices.empty()) {
      const auto [r, p] = choices[std::size_t(choice) % choices.size()];
      put(r, p, {Gradient::Kind::infinite, 1});
      if (marks || any_marked(r)) mark_one(r, p);
    }
    step(stepping, divide_by_all);
    return !choices.empty();
  }

  /// A rank that has set another rate tells all of them, and changes nothing.
  void disagree() {
    int other = -1;
    for (int r = 0; r < ranks_; ++r)
      if (!any_marked(r)) other = r;
    if (other < 0 || ranks_ == 1) return;
    log_ += " (disagree)";
    const double rate = model_.groups.at("default").rate;
    Group group = optimizer_->group("default");
    if (rank_ == other) group.set("learning_rate", rate * 2);
    expect_throw<InvalidArgument>("a step of other rates",
                                  [&] { optimizer_->step(); });
    if (rank_ == other) group.set("learning_rate", rate);
    for (int r = 0; r < ranks_; ++r)
      for (int p = 0; p < model_.size(); ++p)
        if (any_marked(r) && model_.is_trained(p) && !is_marked(r, p))
          gradient(r, p).kind = Gradient::Kind::unknown;
  }

  struct Sums {
    bool skipped = false;
    double squares = 0.0;
    std::optional<NonfiniteSource> source = std::nullopt;
    std::vector<bool> touched = {};
    std::vector<std::vector<double>> averages = {};  // by parameter
  };

  Sums add_up(const std::vector<bool>& stepping, double divisor) {
    Sums sums;
    for (int p = 0; p < model_.size(); ++p) {
      sums.averages.emplace_back(model_[p].main.size());
      sums.touched.push_back(false);
      if (!model_.is_trained(p)) continue;
      for (int r = 0; r < ranks_; ++r) {
        if (!stepping[std::size_t(r)]) continue;
        if (any_marked(r) && !is_marked(r, p)) continue;
        sums.touched[std::size_t(p)] = true;
        const Gradient& from = gradient(r, p);
        expect(from.kind != Gradient::Kind::unknown, "(an error of the test)");
        if (from.kind == Gradient::Kind::infinite && model_[p].size > 0) {
          sums.skipped = true;
          sums.source = NonfiniteSource{r, {p}, 0};
        }
        for (std::size_t i = 0; i < model_[p].main.size(); ++i)
          sums.averages.back()[i] += from.at(std::int64_t(i));
      }
      for (double& each : sums.averages.back()) {
        each = model_.average(p, each, divisor);
        sums.squares += each * each;
      }
    }
    return sums;
  }

  /// all: the ranks that divide. The others do not call.
  void step(const std::vector<bool>& stepping, bool divide_by_all = false) {
    const auto active = std::ranges::count(stepping, true);
    if (active == ranks_ && shared_.one_in(8)) disagree();
    const Sums sums = add_up(
        stepping, reduction_.divisor(divide_by_all ? ranks_ : int(active)));
    if (sums.skipped) {
      ++model_.skipped_total;
      ++model_.skipped_in_a_row;
    } else {
      for (int p = 0; p < model_.size(); ++p)
        if (model_.is_trained(p) &&
            (sums.touched[std::size_t(p)] || !model_[p].keep))
          model_.update(p, sums.averages[std::size_t(p)]);
      ++model_.steps;
      model_.skipped_in_a_row = 0;
    }
    take_marks();
    for (int r = 0; r < ranks_; ++r)
      set_gradients(
          r, sums.skipped ? Gradient::Kind::zeros : Gradient::Kind::unknown);
    if (!stepping[std::size_t(rank_)]) return;
    check_report(optimizer_->step(), sums);
  }

  void check_report(const StepReport& report, const Sums& sums) {
    expect(report.updated() == !sums.skipped, "updated() differs");
    expect(report.skipped_total() == model_.skipped_total &&
               report.skipped_in_a_row() == model_.skipped_in_a_row,
           "skipped steps differ");
    expect(report.nonfinite_source().has_value() == sums.skipped,
           "nonfinite_source() differs");
    if (sums.skipped && report.nonfinite_source()) {
      expect(report.nonfinite_source()->rank == sums.source->rank &&
                 report.nonfinite_source()->parameter == sums.source->parameter,
             "nonfinite_source() is another");
      expect_no_average();
    }
    if (sums.skipped) return;
    const double norm = std::sqrt(sums.squares);
    expect(std::abs(report.gradient_norm() - norm) <= 1e-6 * (1.0 + norm),
           "gradient_norm() differs");
    const int p = dice(unsigned(rank_), 4).roll(model_.size());
    if (model_.is_trained(p)) check_average(p, sums.averages[std::size_t(p)]);
  }

  void add_group() {
    const std::string group = detail::concat("group ", model_.groups.size());
    if (shared_.one_in(4)) {
      ParameterSet taken;
      taken.add("p0", {3});
      expect_throw<InvalidArgument>("a name that is taken", [&] {
        optimizer_->add_group(group, taken, Sgd{});
      });
      ParameterSet other;
      other.add("other", {3 + rank_});
      if (ranks_ > 1)
        expect_throw<InvalidArgument>("other parameters on each rank", [&] {
          optimizer_->add_group(group, other, Sgd{});
        });
    }
    const int first = model_.size();
    ParameterSet set;
    const SerialGroup added = some_group();
    model_.groups[group] = added;
    for (int i = shared_.roll(4); i > 0; --i) declare(set, group, first);
    const auto ids =
        optimizer_->add_group(group, set, rule_of(added.rule, added.rate));
    expect(std::ssize(ids) == set.size(), "add_group gave other ids");
    for (std::size_t k = 0; k < ids.size(); ++k)
      expect(ids[k].index == first + int(k), "add_group gave another id");
    expect_no_average();
    check_counts();
  }

  /// On ranks that go on.
  void change_rate(const std::vector<bool>& stepping) {
    auto group = model_.groups.begin();
    std::advance(group, shared_.roll(int(model_.groups.size())));
    group->second.rate = std::exp2(-shared_.roll(4));
    if (stepping[std::size_t(rank_)])
      optimizer_->group(group->first).set("learning_rate", group->second.rate);
  }

  struct Snapshot {
    SerialModel model;
    std::string file = {};                               // or:
    std::optional<OptimizerState> state = std::nullopt;  // on root
    int root = 0;
  };

  void save() {
    const std::string file = detail::concat("s", seed_, "_", calls_, ".h5");
    save_checkpoint(*optimizer_, folder_ / file);
    files_.push_back(file);
    snapshots_.push_back({model_, file});
  }

  void consolidate() {
    const int root = shared_.roll(ranks_);
    auto state = optimizer_->consolidate(root);
    expect(state.has_value() == (rank_ == root), "another rank has the state");
    if (state) check_state(*state);
    snapshots_.push_back({model_, "", std::move(state), root});
  }

  void take(const Snapshot& from, Match match) {
    if (from.file.empty())
      optimizer_->load_state(from.state, from.root, {.match = match});
    else
      load_checkpoint(*optimizer_, folder_ / from.file, {.match = match});
  }

  /// False where there is no state yet.
  bool load(bool anew) {
    if (snapshots_.empty()) {
      expect_throw<CheckpointError>("loading what is not there", [&] {
        load_checkpoint(*optimizer_, folder_ / "nothing");
      });
      return false;
    }
    const Snapshot from =
        snapshots_[std::size_t(shared_.roll(int(snapshots_.size())))];
    if (anew) {
      log_ += "(anew)";
      start_anew(from.model);
      // The others are not of this model any more.
      std::erase_if(snapshots_, [&](const Snapshot& each) {
        return each.model.groups.size() > model_.groups.size();
      });
    }
    const bool whole = from.model.groups.size() == model_.groups.size();
    if (!whole) {
      if (from.file.empty())
        expect_throw<InvalidArgument>("a state of before",
                                      [&] { take(from, Match::strict); });
      else
        expect_throw<CheckpointError>("a file of before",
                                      [&] { take(from, Match::strict); });
      check_counts();
    }
    take(from, whole ? Match::strict : Match::partial);
    model_.load(from.model);
    expect_no_average();
    check_counts();
    return true;
  }

  /// Another optimizer, of the parameters that there were.
  void start_anew(const SerialModel& saved) {
    const ParameterSet all = optimizer_->parameters();
    optimizer_.reset();
    ParameterSet set;
    for (int p = 0; p < saved.size(); ++p) {
      const ParameterInfo& info = all[{p}];
      ParameterOptions options{.dtype = info.dtype,
                               .gradient_dtype = info.gradient_dtype,
                               .group = info.group,
                               .chunk = info.chunk,
                               .tied_to = info.tied_to,
                               .unmarked = info.unmarked,
                               .frozen = info.frozen};
      if (own_.contains(p))
        own_.at(p).add_to(set, info.name, options);
      else
        set.add(info.name, info.extents, options);
    }
    std::erase_if(own_,
                  [&](const auto& own) { return own.first >= saved.size(); });
    model_ = saved;
    const auto size = std::size_t(saved.size());
    chunks_.resize(size);
    for (std::size_t r = 0; r < std::size_t(ranks_); ++r) {
      gradients_[r].resize(size);
      marked_[r].resize(size);
      last_order_[r].clear();
      set_gradients(int(r), Gradient::Kind::unknown);
    }
    make_optimizer(set);
  }

  /// False where no order is known.
  bool rebuild() {
    const std::vector<int>& order = last_order_[0];
    if (order.empty()) {
      expect_throw<InvalidArgument>("rebuilding before a mark",
                                    [&] { optimizer_->rebuild_buckets(); });
      return false;
    }
    optimizer_->rebuild_buckets();
    // A storage is ready with the last of its names.
    std::vector<int> position(std::size_t(model_.size()), model_.size());
    for (int k = 0; k < int(order.size()); ++k)
      position[std::size_t(model_[order[std::size_t(k)]].storage)] = k;
    const Plan& plan = optimizer_->plan();
    for (int a = 0; a < model_.size(); ++a)
      for (int b = 0; b < model_.size(); ++b) {
        const Placement& first = plan.placement({a});
        const Placement& second = plan.placement({b});
        if (model_.is_storage(a) && model_.is_storage(b) &&
            first.buffer == second.buffer &&
            position[std::size_t(a)] < position[std::size_t(b)])
          expect(first.bucket <= second.bucket,
                 "buckets are not in the order of marks");
      }
    expect_no_average();
    check_counts();
    return true;
  }

  void write() {
    const int root = shared_.roll(ranks_);
    const int p = shared_.roll(model_.size());
    const int what = shared_.roll(4);
    if (what == 0) {
      optimizer_->reload_main_from_parameters();
    } else if (what == 1) {
      optimizer_->broadcast_parameters(root);
    } else {
      write_one(root, model_[p].storage, shared_.roll(20));
    }
    model_.round_main();
  }

  void write_one(int root, int p, int from) {
    const auto value = [&](std::int64_t i) { return double(i % 11 + from); };
    optimizer_->write_parameters(root, [&](ParameterWriter& writer) {
      if (own_.contains(p))
        own_.at(p).value.fill(value);
      else
        writer.visit({p}, [&](const auto& view) { fill_view(view, value); });
    });
    for (std::size_t i = 0; i < model_[p].main.size(); ++i)
      model_[p].main[i] = value(std::int64_t(i));
  }

  void zero() {
    for (int r = 0; r < ranks_; ++r) {
      if (dice(unsigned(r), 5).one_in(2)) continue;
      set_gradients(r, Gradient::Kind::zeros);
      if (r == rank_) optimizer_->zero_gradients();
    }
  }

  void read_some() {
    Dice own = dice(unsigned(rank_), 6);
    for (int i = own.roll(6); i > 0; --i) read(own.roll(model_.size()));
    if (own.one_in(4)) optimizer_->wait_parameters();
    if (own.one_in(4))
      optimizer_->finish_gather(
          chunks_[std::size_t(own.roll(int(chunks_.size())))]);
    if (own.one_in(4)) check_counts();
  }

  void join() {
    JoinOptions options;
    if (shared_.one_in(2)) options.divisor = JoinDivisor::all;
    if (shared_.one_in(4)) options.uneven = Uneven::refuse;
    const bool by_all = options.divisor == JoinDivisor::all;
    std::vector<int> steps(std::size_t(ranks_), shared_.roll(4));
    if (!shared_.one_in(4))
      for (int& each : steps) each = shared_.roll(4);
    log_ += '(';
    for (const int each : steps) log_ += detail::concat(each, ' ');
    log_ += detail::concat(by_all ? "all" : "active",
                           options.uneven == Uneven::refuse ? " refuse" : "");
    std::unique_ptr<Companion> companion;
    if (shared_.one_in(3)) {
      // A rank may be reading, and its making calls nothing of the first one.
      optimizer_->wait_parameters();
      companion = std::make_unique<Companion>(communicator_, shared_);
    }
    std::vector<ShardedOptimizer*> members = {optimizer_.get()};
    if (companion)
      members.insert(members.begin() + shared_.roll(2),
                     &companion->optimizer());
    Join join(members, options);
    bool here = true;  // not in finish()
    for (int round = 0; round < std::ranges::max(steps); ++round) {
      std::vector<bool> stepping;
      for (const int each : steps) stepping.push_back(each > round);
      const bool even = round < std::ranges::min(steps);
      ++calls_;
      log_ += even ? " :" : " .";
      if (!even && options.uneven == Uneven::refuse) {
        refuse_uneven(join, stepping);
        break;
      }
      if (even && shared_.one_in(2)) fill(everyone());
      if (even) collective_in_join();
      // What comes are the steps of the others, and this rank's model goes on.
      if (here && !stepping[std::size_t(rank_)]) {
        join.finish();
        here = false;
      }
      if (companion && shared_.one_in(2)) companion->step(stepping);
      if (shared_.one_in(3)) change_rate(stepping);
      round_of_join(join, stepping, by_all);
      if (companion && shared_.one_in(2)) companion->step(stepping);
    }
    log_ += ')';
    if (here && !leaves_early(steps)) join.finish();
    check_counts();
    if (companion)
      expect(companion->is_right(), "the other optimizer of a join is wrong");
  }

  /// Where nobody has run out, a join can end without finish().
  bool leaves_early(const std::vector<int>& steps) {
    return std::ranges::min(steps) == std::ranges::max(steps) &&
           shared_.one_in(2);
  }

  void round_of_join(Join& join, const std::vector<bool>& stepping,
                     bool divide_by_all) {
    if (shared_.one_in(2))
      mark(stepping);
    else
      fill(stepping);
    const bool all = std::ranges::count(stepping, true) == ranks_;
    if (all && any_marked() && shared_.one_in(6)) finish_after_marks(join);
    if (shared_.one_in(6))
      skip(stepping, divide_by_all);
    else
      step(stepping, divide_by_all);
  }

  /// A rank that finishes between a mark and step() tells all of them.
  void finish_after_marks(Join& join) {
    log_ += " (finish)";
    int other = 0;
    while (!any_marked(other)) ++other;
    expect_throw<InvalidArgument>("finish() after a mark", [&] {
      if (rank_ == other)
        join.finish();
      else
        optimizer_->step();
    });
  }

  void refuse_uneven(Join& join, const std::vector<bool>& stepping) {
    if (shared_.one_in(2)) mark(stepping);
    expect_throw<InvalidArgument>("an uneven step", [&] {
      if (stepping[std::size_t(rank_)])
        optimizer_->step();
      else
        join.finish();
    });
    take_marks();
    for (int r = 0; r < ranks_; ++r) set_gradients(r, Gradient::Kind::unknown);
    check_counts();
  }

  void collective_in_join() {
    switch (shared_.roll(12)) {
      case 0:
        return add_group();
      case 1:
        return save();
      case 2:
        load(false);
        return;
      case 3:
        rebuild();
        return;
      case 4:
        return consolidate();
      case 5:
        return write();
      case 6:
        return expect_throw<InvalidArgument>(
            "a second join", [&] { const Join second(*optimizer_); });
      default:
        return;
    }
  }

  std::shared_ptr<Communicator> communicator_;
  int ranks_;
  int rank_;
  unsigned seed_;
  const ScratchFolder& folder_;
  Pairs& pairs_;
  Dice shared_;
  SerialModel model_;
  std::vector<int> chunks_;  // by parameter
  std::map<int, Own> own_;   // by parameter
  ByRank<Gradient> gradients_;
  ByRank<bool> marked_;
  ByRank<int> order_;       // of the marks
  ByRank<int> last_order_;  // in the last step that had any
  std::vector<Snapshot> snapshots_;
  std::vector<std::string> files_;
  Reduction reduction_;
  bool finite_ = false;
  Hook hook_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
  unsigned calls_ = 0;
  std::string log_;
  std::string failure_;
};

/// Every rank ends, or the others would wait for it: what is wrong on one is
/// known to all.
std::string run_program(const std::shared_ptr<Communicator>& communicator,
                        unsigned seed, const ScratchFolder& folder,
                        Pairs& pairs) {
  std::unique_ptr<Program> program;
  try {
    program = std::make_unique<Program>(communicator, seed, folder, pairs);
    program->run(16);
    return program->failure();
  } catch (const std::exception& error) {
    return detail::concat(error.what(), " in ",
                          program ? program->name() : std::to_string(seed));
  }
}

TEST(RandomPrograms, GiveWhatASerialModelGives) {
  const auto fast = world();
  CommunicatorOptions patient;
  patient.timeout = std::chrono::seconds(120);
  // On which what is read or written too early shows.
  const auto slow = make_simulated_communicator(
      world(), {std::chrono::microseconds(100), 1e9});
  const auto verdicts = make_communicator(MPI_COMM_WORLD, patient);
  const ScratchFolder folder(MPI_COMM_WORLD);
  Pairs pairs;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::string failure =
        run_program(seed % 4 == 3 ? slow : fast, seed, folder, pairs);
    std::int64_t failed = failure.empty() ? 0 : 1;
    if (failed != 0) ADD_FAILURE() << failure;
    verdicts->all_reduce({&failed, 1}, Extremum::maximum, {"test"});
    if (failed != 0) FAIL() << "seed " << seed;
  }
  EXPECT_EQ(pairs.missing(), "");
}

}  // namespace
}  // namespace kzero::test
