// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A random program: an optimizer and the serial model that it is compared with.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/random_programs/calls.hpp"
#include "io/random_programs/hook.hpp"
#include "io/scratch_folder.hpp"
#include "io/serial_model.hpp"
#include "support/dice.hpp"
#include "support/own_memory.hpp"

namespace kzero::test {

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

/// What ranks do together they roll shared dice for. What each does alone all
/// others know too, since the dice of a rank begin with its number.
class Program {
 public:
  Program(std::shared_ptr<Communicator> communicator, unsigned seed,
          const ScratchFolder& folder, Pairs& pairs);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run(int calls);

  std::string name() const;
  /// Empty when nothing was wrong.
  const std::string& failure() const { return failure_; }

 private:
  struct Sums {
    bool skipped = false;
    double squares = 0.0;
    std::optional<NonfiniteSource> source = std::nullopt;
    std::vector<bool> touched = {};
    std::vector<std::vector<double>> averages = {};  // by parameter
  };

  struct Snapshot {
    SerialModel model;
    std::string file = {};                               // or:
    std::optional<OptimizerState> state = std::nullopt;  // on root
    int root = 0;
  };

  /// False when the call was not what its name says.
  bool perform(Call call);
  void refuse_after_marks(Call call);

  // declare.cpp
  SerialGroup some_group();
  /// first: of the set that is being declared.
  void declare(ParameterSet& set, const std::string& group, int first);
  void make_optimizer(const ParameterSet& set);
  /// Another optimizer, of the parameters that there were.
  void start_anew(const SerialModel& saved);

  // step.cpp
  Dice dice(unsigned rank, unsigned purpose) const;
  std::vector<bool> everyone() const;
  bool any_marked(int rank) const { return !order_[std::size_t(rank)].empty(); }
  bool any_marked() const;
  /// Any name of the storage.
  bool is_marked(int rank, int storage) const;
  std::vector<int> markable(int rank) const;
  Gradient& gradient(int rank, int p);
  void set_gradients(int rank, Gradient::Kind kind);
  /// New gradients, on the ranks that step: where there are none, and some.
  void fill(const std::vector<bool>& stepping);
  void put(int rank, int p, Gradient numbers);
  void mark_one(int rank, int p);
  /// Marks are used up.
  void take_marks();
  /// False where there was nothing left to mark.
  bool mark(const std::vector<bool>& stepping);
  /// Infinite on one rank. False where that cannot be.
  bool skip(const std::vector<bool>& stepping, bool divide_by_all = false);
  /// A rank that has set another rate tells all of them, and changes nothing.
  void disagree();
  Sums add_up(const std::vector<bool>& stepping, double divisor);
  /// all: the ranks that divide. The others do not call.
  void step(const std::vector<bool>& stepping, bool divide_by_all = false);

  // collectives.cpp
  void add_group();
  /// On ranks that go on.
  void change_rate(const std::vector<bool>& stepping);
  void save();
  void consolidate();
  void take(const Snapshot& from, Match match);
  /// False where there is no state yet.
  bool load(bool anew);
  /// False where no order is known.
  bool rebuild();
  void write();
  void write_one(int root, int p, int from);
  void zero();
  void read_some();

  // join.cpp
  void join();
  /// Where nobody has run out, a join can end without finish().
  bool leaves_early(const std::vector<int>& steps);
  void round_of_join(Join& join, const std::vector<bool>& stepping,
                     bool divide_by_all);
  /// A rank that finishes between a mark and step() tells all of them.
  void finish_after_marks(Join& join);
  void refuse_uneven(Join& join, const std::vector<bool>& stepping);
  void collective_in_join();

  // check.cpp
  void expect(bool right, std::string_view what);
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
  std::vector<double> values_here(int storage);
  void read(int p);
  void check_counts();
  void check_array(const ParameterState& saved, const std::string& array,
                   const SerialParameter& of,
                   const std::vector<double>& expected);
  void check_state(const OptimizerState& state);
  void check_everything();
  void check_average(int p, const std::vector<double>& expected);
  void expect_no_average();
  void check_report(const StepReport& report, const Sums& sums);

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

}  // namespace kzero::test
