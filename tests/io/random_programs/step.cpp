// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Gradients, marks and steps, of this rank and the others.
#include "io/random_programs/program.hpp"

#include <algorithm>
#include <utility>

#include "support/optimizer_support.hpp"

namespace kzero::test {

Dice Program::dice(unsigned rank, unsigned purpose) const {
  return Dice({seed_, calls_, rank, purpose});
}

std::vector<bool> Program::everyone() const {
  return std::vector<bool>(std::size_t(ranks_), true);
}

bool Program::any_marked() const {
  return std::ranges::any_of(order_, [](const auto& o) { return !o.empty(); });
}

bool Program::is_marked(int rank, int storage) const {
  for (int p = 0; p < model_.size(); ++p)
    if (model_[p].storage == storage &&
        marked_[std::size_t(rank)][std::size_t(p)])
      return true;
  return false;
}

Gradient& Program::gradient(int rank, int p) {
  return gradients_[std::size_t(rank)][std::size_t(p)];
}

void Program::set_gradients(int rank, Gradient::Kind kind) {
  for (Gradient& each : gradients_[std::size_t(rank)]) each = {kind};
}

void Program::take_marks() {
  for (std::size_t r = 0; r < std::size_t(ranks_); ++r) {
    if (!order_[r].empty()) last_order_[r] = std::move(order_[r]);
    order_[r].clear();
    std::fill(marked_[r].begin(), marked_[r].end(), false);
  }
}

void Program::fill(const std::vector<bool>& stepping) {
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

void Program::put(int rank, int p, Gradient numbers) {
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

void Program::mark_one(int rank, int p) {
  marked_[std::size_t(rank)][std::size_t(p)] = true;
  order_[std::size_t(rank)].push_back(p);
  if (rank == rank_) optimizer_->mark_ready({p});
}

std::vector<int> Program::markable(int rank) const {
  std::vector<int> all;
  for (int p = 0; p < model_.size(); ++p)
    if (!model_[p].frozen && !marked_[std::size_t(rank)][std::size_t(p)])
      all.push_back(p);
  return all;
}

bool Program::mark(const std::vector<bool>& stepping) {
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

bool Program::skip(const std::vector<bool>& stepping, bool divide_by_all) {
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

void Program::disagree() {
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

Program::Sums Program::add_up(const std::vector<bool>& stepping,
                              double divisor) {
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

void Program::step(const std::vector<bool>& stepping, bool divide_by_all) {
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

}  // namespace kzero::test
