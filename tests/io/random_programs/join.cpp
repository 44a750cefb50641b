// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Steps within a join, of which ranks run out.
#include "io/random_programs/program.hpp"

#include <algorithm>
#include <memory>

#include "io/random_programs/companion.hpp"

namespace kzero::test {

void Program::join() {
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
    members.insert(members.begin() + shared_.roll(2), &companion->optimizer());
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

bool Program::leaves_early(const std::vector<int>& steps) {
  return std::ranges::min(steps) == std::ranges::max(steps) &&
         shared_.one_in(2);
}

void Program::round_of_join(Join& join, const std::vector<bool>& stepping,
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

void Program::finish_after_marks(Join& join) {
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

void Program::refuse_uneven(Join& join, const std::vector<bool>& stepping) {
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

void Program::collective_in_join() {
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

}  // namespace kzero::test
