// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A program from its first call to its last one, and which calls it makes.
#include "io/random_programs/program.hpp"

#include <filesystem>
#include <utility>

namespace kzero::test {

Program::Program(std::shared_ptr<Communicator> communicator, unsigned seed,
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

Program::~Program() {
  if (rank_ != 0) return;
  for (const std::string& file : files_)
    std::filesystem::remove(folder_ / file);
}

std::string Program::name() const {
  return detail::concat("seed ", seed_, ", rank ", rank_, ":", log_);
}

void Program::run(int calls) {
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

bool Program::perform(Call call) {
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

void Program::refuse_after_marks(Call call) {
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

}  // namespace kzero::test
