// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/node_traffic.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <utility>

#include "comm/argument_checks.hpp"
#include "comm/missing_ranks.hpp"
#include "core/message.hpp"

namespace kzero::detail {
namespace {

constexpr std::chrono::microseconds nap{1000};

const char* name_of(NodeCall call) {
  switch (call) {
    case NodeCall::reduce:
      return "a reduction";
    case NodeCall::all_gather:
      return "an all-gather of a bucket";
    case NodeCall::small_all_gather:
      return "an all-gather";
    case NodeCall::barrier:
      return "a barrier";
    case NodeCall::none:
      break;
  }
  return "nothing";
}

std::string words_of(const NodeRecord& record) {
  std::string text =
      concat(name_of(record.call), " (its call ", record.number, ")");
  if (record.call == NodeCall::barrier) return text;
  if (record.call == NodeCall::small_all_gather)
    return concat(text, " of ", counted(record.total, "byte"));
  return concat(
      text, ", index ", record.index, ", ", counted(record.total, "element"),
      " of type ", static_cast<DType>(record.dtype), ", shard ",
      Range{record.shard_begin, record.shard_begin + record.shard_size},
      record.is_common != 0 ? ", in memory that ranks have in common" : "");
}

bool is_same(const NodeRecord& a, const NodeRecord& b) {
  return a.number == b.number && a.call == b.call && a.dtype == b.dtype &&
         a.index == b.index && a.total == b.total &&
         a.shard_begin == b.shard_begin && a.shard_size == b.shard_size &&
         a.is_common == b.is_common;
}

}  // namespace

NodeOperation::NodeOperation(NodeTraffic& traffic) : traffic_(traffic) {
  traffic_.live_.reserve(++traffic_.made_);
}

void NodeOperation::post(NodeCall call, const Subject& subject, DType dtype,
                         const ShardTable& shards, const void* bucket,
                         Range readable, Range filled) {
  const Range own = shards.range(traffic_.rank_of(traffic_.self()));
  subject_ = subject;
  shards_ = shards;
  record_ = {traffic_.count_call(),
             call,
             static_cast<std::int32_t>(dtype),
             subject.bucket,
             shards.total(),
             own.begin,
             own.size(),
             0,
             {}};
  const std::int64_t element = size_of(dtype);
  const std::int64_t first = readable.begin * element;
  const std::int64_t bytes = readable.size() * element;
  const auto* data = static_cast<const std::byte*>(bucket) + first;
  NodeMemory& memory = traffic_.memory();
  // By the whole bucket: the address of no bytes may be that of the memory
  // behind it.
  region_ = memory.find(bucket, shards.total() * element);
  stand_in_ = nullptr;
  if (region_ == nullptr) {
    if (copy_ == nullptr || copied_bytes_ < bytes) {
      copy_.reset();
      copy_ = allocate_copy(bytes);
      copied_bytes_ = bytes;
    }
    stand_in_ = static_cast<std::byte*>(copy_.get()) - first;
    copy_bytes(stand_in_ + filled.begin * element,
               static_cast<const std::byte*>(bucket) + filled.begin * element,
               filled.size() * element);
    data = static_cast<const std::byte*>(copy_.get());
    region_ = memory.find(data, bytes);
  }
  record_.is_common =
      memory.is_common(bucket, shards.total() * element) ? 1 : 0;
  record_.address = NodeMemory::address(*region_, data);
  record_.address.offset -= first;
  come_.assign(static_cast<std::size_t>(traffic_.size()), 0);
  traffic_.add(*this);
}

// Every operation that is under way at a time has its own.
std::shared_ptr<void> NodeOperation::allocate_copy(std::int64_t bytes) {
  try {
    return traffic_.memory().allocate(bytes, traffic_.health());
  } catch (const Error& error) {
    throw Error(concat(error.what(),
                       "; it stands for a bucket that peers cannot read: "
                       "buckets from Communicator::allocate() need none"));
  }
}

bool NodeOperation::is_announced() const {
  return number_ < traffic_.announced_;
}

bool NodeOperation::has_come(int peer) {
  std::uint8_t& come = come_[static_cast<std::size_t>(peer)];
  if (come != 0) return true;
  NodeSeat& seat = traffic_.seats().seat(peer);
  if (seat.posted.load(std::memory_order_acquire) <= number_) return false;
  NodeRecord expected = record_;
  const Range range = shards_.range(traffic_.rank_of(peer));
  expected.shard_begin = range.begin;
  expected.shard_size = range.size();
  traffic_.require_same(seat.of(number_).record, expected, subject_, peer);
  come = 1;
  return true;
}

const std::byte* NodeOperation::open(int peer) {
  const NodeAddress& address =
      traffic_.seats().seat(peer).of(number_).record.address;
  try {
    return traffic_.memory().open(*region_, peer, address);
  } catch (const Error& error) {
    traffic_.fail(concat(detail::name_of(subject_), " failed on rank ",
                         traffic_.rank_of(traffic_.self()), ": memory of rank ",
                         traffic_.rank_of(peer), ": ", error.what()));
  }
}

bool NodeOperation::is_done_by(int peer) const {
  return traffic_.seats().seat(peer).done(number_) > number_;
}

bool NodeOperation::is_done_by_all() const {
  for (int peer = 0; peer < traffic_.size(); ++peer)
    if (peer != traffic_.self() && !is_done_by(peer)) return false;
  return true;
}

void NodeOperation::set_done() {
  traffic_.seats().mine().of(number_).done.store(number_ + 1,
                                                 std::memory_order_release);
  traffic_.seats().ring();
}

void NodeOperation::set_arrived() {
  traffic_.seats().mine().of(number_).arrived.store(number_ + 1,
                                                    std::memory_order_release);
  traffic_.seats().ring();
}

bool NodeOperation::has_arrived_at(int peer) const {
  return traffic_.seats().seat(peer).of(number_).arrived.load(
             std::memory_order_acquire) > number_;
}

void NodeOperation::retire() noexcept {
  traffic_.remove(*this);
  region_.reset();
}

NodeTraffic::NodeTraffic(NodeSeats seats, std::vector<int> ranks,
                         std::shared_ptr<NodeMemory> memory, MpiLink& link)
    : seats_(std::move(seats)),
      ranks_(std::move(ranks)),
      memory_(std::move(memory)),
      link_(link) {
  enlist();
}

NodeTraffic::~NodeTraffic() { dismiss(); }

void NodeTraffic::try_to_go_on() noexcept {
  const std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock.owns_lock() || health()->broken()) return;
  try {
    progress();
  } catch (const std::exception& error) {
    // It is unusable now, and says so at its next call.
    break_off({"progress"}, error.what());
  }
}

void NodeTraffic::add(NodeOperation& operation) {
  operation.number_ = started_;
  live_.push_back(&operation);
  ++started_;
  announce();
}

void NodeTraffic::remove(NodeOperation& operation) noexcept {
  const std::lock_guard lock(busy_);
  std::erase(live_, &operation);
}

// Nobody looks at the slots of a rank that has its node to itself.
bool NodeTraffic::has_room(std::uint64_t number) const {
  if (number < NodeSeat::slots || size() == 1) return true;
  for (int peer = 0; peer < size(); ++peer)
    if (seats_.seat(peer).done(number) + NodeSeat::slots <= number)
      return false;
  return true;
}

void NodeTraffic::announce() {
  if (announced_ == started_) return;
  const std::uint64_t before = announced_;
  for (NodeOperation* operation : live_) {
    if (operation->number_ != announced_) continue;
    if (!has_room(announced_)) break;
    seats_.mine().of(announced_).record = operation->record_;
    ++announced_;
  }
  if (announced_ == before) return;
  seats_.mine().posted.store(announced_, std::memory_order_release);
  seats_.ring();
}

void NodeTraffic::progress() {
  announce();
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (live_[i]->number_ >= announced_) return;
    live_[i]->advance();
  }
}

void NodeTraffic::relax(std::int64_t looks, int peer,
                        std::uint32_t bell) const {
  if (looks < eager_looks) return;
  if (looks < yielding_looks)
    std::this_thread::yield();
  else
    seats_.sleep(peer, bell, nap);
}

// The seats are the only memory that a forked child shares with this process.
void NodeTraffic::announce_end() noexcept {
  if (process_id() != process_) return;
  seats_.mine().gone.store(1, std::memory_order_release);
  seats_.ring();
}

void NodeTraffic::break_off(const Subject& subject,
                            std::string_view why) noexcept {
  const std::lock_guard lock(busy_);
  link_.break_off(subject, why);
  announce_end();
}

void NodeTraffic::fail(const std::string& message) {
  announce_end();
  link_.fail(message);
}

void NodeTraffic::time_out(const Subject& subject, const std::string& time,
                           const std::vector<int>& missing) {
  fail(concat(detail::name_of(subject), " timed out after ", time, " on rank ",
              rank_of(self()), ": ", no_answer_from(missing, link_.size() - 1),
              // It may want something of another node first.
              link_.size() > size() ? may_wait_itself : "", same_calls));
}

void NodeTraffic::fail_without(const Subject& subject, int peer) {
  fail(concat(detail::name_of(subject), " failed on rank ", rank_of(self()),
              ": rank ", rank_of(peer),
              " has given the communicator up after an error of its own"));
}

void NodeTraffic::require_same(const NodeRecord& found,
                               const NodeRecord& expected,
                               const Subject& subject, int peer) {
  if (is_same(found, expected)) return;
  fail(concat(detail::name_of(subject), " failed on rank ", rank_of(self()),
              ": rank ", rank_of(peer), " calls ", words_of(found),
              ", here it is ", words_of(expected), same_calls));
}

}  // namespace kzero::detail
