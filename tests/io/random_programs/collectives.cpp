// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Calls between steps.
#include "io/random_programs/program.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "support/optimizer_support.hpp"

namespace kzero::test {

void Program::add_group() {
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

void Program::change_rate(const std::vector<bool>& stepping) {
  auto group = model_.groups.begin();
  std::advance(group, shared_.roll(int(model_.groups.size())));
  group->second.rate = std::exp2(-shared_.roll(4));
  if (stepping[std::size_t(rank_)])
    optimizer_->group(group->first).set("learning_rate", group->second.rate);
}

void Program::save() {
  const std::string file = detail::concat("s", seed_, "_", calls_, ".h5");
  save_checkpoint(*optimizer_, folder_ / file);
  files_.push_back(file);
  snapshots_.push_back({model_, file});
}

void Program::consolidate() {
  const int root = shared_.roll(ranks_);
  auto state = optimizer_->consolidate(root);
  expect(state.has_value() == (rank_ == root), "another rank has the state");
  if (state) check_state(*state);
  snapshots_.push_back({model_, "", std::move(state), root});
}

void Program::take(const Snapshot& from, Match match) {
  if (from.file.empty())
    optimizer_->load_state(from.state, from.root, {.match = match});
  else
    load_checkpoint(*optimizer_, folder_ / from.file, {.match = match});
}

bool Program::load(bool anew) {
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

bool Program::rebuild() {
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

void Program::write() {
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

void Program::write_one(int root, int p, int from) {
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

void Program::zero() {
  for (int r = 0; r < ranks_; ++r) {
    if (dice(unsigned(r), 5).one_in(2)) continue;
    set_gradients(r, Gradient::Kind::zeros);
    if (r == rank_) optimizer_->zero_gradients();
  }
}

void Program::read_some() {
  Dice own = dice(unsigned(rank_), 6);
  for (int i = own.roll(6); i > 0; --i) read(own.roll(model_.size()));
  if (own.one_in(4)) optimizer_->wait_parameters();
  if (own.one_in(4))
    optimizer_->finish_gather(
        chunks_[std::size_t(own.roll(int(chunks_.size())))]);
  if (own.one_in(4)) check_counts();
}

}  // namespace kzero::test
