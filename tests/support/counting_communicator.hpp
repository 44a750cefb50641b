// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A communicator around another that counts the collectives, its duplicates'
// included, and can do something before each.
#pragma once

#include <atomic>
#include <functional>
#include <kzero/communicator.hpp>
#include <memory>
#include <string>
#include <utility>

namespace kzero::test {

class CountingCommunicator : public Communicator {
 public:
  using Counter = std::atomic<int>;
  using Before = std::function<void()>;

  explicit CountingCommunicator(
      std::shared_ptr<Communicator> inner, Before before = [] {},
      std::shared_ptr<Counter> counter = std::make_shared<Counter>(0))
      : inner_(std::move(inner)),
        before_(std::move(before)),
        counter_(std::move(counter)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::chrono::milliseconds timeout() const override {
    return inner_->timeout();
  }
  std::string describe() const override { return inner_->describe(); }
  std::shared_ptr<Communicator> duplicate() override {
    count();
    return std::make_shared<CountingCommunicator>(inner_->duplicate(), before_,
                                                  counter_);
  }
  bool concurrent() const override { return inner_->concurrent(); }
  std::shared_ptr<void> allocate(std::int64_t bytes) override {
    return inner_->allocate(bytes);
  }
  std::int64_t staging_bytes() const override {
    return inner_->staging_bytes();
  }
  std::int64_t bytes_sent() const override { return inner_->bytes_sent(); }
  ReductionTicket start_reduce(const ReduceArguments& arguments) override {
    count();
    return inner_->start_reduce(arguments);
  }
  Ticket start_all_gather(const GatherArguments& arguments) override {
    count();
    return inner_->start_all_gather(arguments);
  }
  void all_gather(const void* send, std::int64_t bytes, void* receive,
                  Subject subject) override {
    count();
    inner_->all_gather(send, bytes, receive, subject);
  }
  void broadcast(void* data, std::int64_t bytes, int root,
                 Subject subject) override {
    count();
    inner_->broadcast(data, bytes, root, subject);
  }
  void gather(const void* send, void* receive, const ShardTable& shards,
              std::int64_t element_bytes, int root, Subject subject) override {
    count();
    inner_->gather(send, receive, shards, element_bytes, root, subject);
  }
  void scatter(const void* send, void* receive, const ShardTable& shards,
               std::int64_t element_bytes, int root, Subject subject) override {
    count();
    inner_->scatter(send, receive, shards, element_bytes, root, subject);
  }
  void barrier(Subject subject) override {
    count();
    inner_->barrier(subject);
  }

 private:
  void count() {
    ++collectives;
    before_();
  }

  std::shared_ptr<Communicator> inner_;
  Before before_;
  std::shared_ptr<Counter> counter_;

 public:
  Counter& collectives = *counter_;
};

}  // namespace kzero::test
