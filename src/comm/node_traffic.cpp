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

// A peer that runs on a core of its own comes within the first looks; then this
// rank's core goes to others, which may be the peer.
constexpr int eager_looks = 200;
constexpr int yielding_looks = 300;
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
      Range{record.shard_begin, record.shard_begin + record.shard_size});
}

/// Of this process.
struct AllTraffic {
  std::mutex mutex;
  std::vector<NodeTraffic*> list;
};

// Never destroyed: communicators may be of static storage.
AllTraffic& all_traffic() {
  static auto& instance = *new AllTraffic;
  return instance;
}

bool is_same(const NodeRecord& a, const NodeRecord& b) {
  return a.number == b.number && a.call == b.call && a.dtype == b.dtype &&
         a.index == b.index && a.total == b.total &&
         a.shard_begin == b.shard_begin && a.shard_size == b.shard_size;
}

}  // namespace

NodeOperation::NodeOperation(NodeTraffic& traffic) : traffic_(traffic) {
  traffic_.live_.reserve(++traffic_.made_);
}

void NodeOperation::post(NodeCall call, const Subject& subject, DType dtype,
                         const ShardTable& shards, const void* bucket,
                         Range range) {
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
             {}};
  const std::int64_t first = range.begin * size_of(dtype);
  const std::int64_t bytes = range.size() * size_of(dtype);
  const auto* data = static_cast<const std::byte*>(bucket) + first;
  NodeMemory& memory = traffic_.memory();
  region_ = memory.find(data, bytes);
  if (region_ == nullptr) {
    if (copy_ == nullptr || copied_bytes_ < bytes) {
      copy_.reset();
      copy_ = memory.allocate(bytes, traffic_.health());
      copied_bytes_ = bytes;
    }
    copy_bytes(copy_.get(), data, bytes);
    data = static_cast<const std::byte*>(copy_.get());
    region_ = memory.find(data, bytes);
  }
  record_.address = NodeMemory::address(*region_, data);
  record_.address.offset -= first;
  come_.assign(static_cast<std::size_t>(traffic_.size()), 0);
  traffic_.add(*this);
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

bool NodeOperation::is_done() const {
  for (int peer = 0; peer < traffic_.size(); ++peer)
    if (!is_done_by(peer)) return false;
  return true;
}

void NodeOperation::set_done() {
  traffic_.seats().mine().of(number_).done.store(number_ + 1,
                                                 std::memory_order_release);
  traffic_.seats().ring();
}

void NodeOperation::retire() noexcept {
  traffic_.remove(*this);
  region_.reset();
}

NodeTraffic::NodeTraffic(NodeSeats seats, std::vector<int> ranks,
                         std::shared_ptr<NodeMemory> memory,
                         std::chrono::milliseconds timeout,
                         std::shared_ptr<Health> health)
    : seats_(std::move(seats)),
      ranks_(std::move(ranks)),
      memory_(std::move(memory)),
      timeout_(timeout),
      health_(std::move(health)) {
  const std::lock_guard lock(all_traffic().mutex);
  all_traffic().list.push_back(this);
}

NodeTraffic::~NodeTraffic() {
  const std::lock_guard lock(all_traffic().mutex);
  std::erase(all_traffic().list, this);
}

// Who is busy is at it already.
void NodeTraffic::progress_of_all(const NodeTraffic& but) noexcept {
  const std::unique_lock all(all_traffic().mutex, std::try_to_lock);
  if (!all.owns_lock()) return;
  for (NodeTraffic* each : all_traffic().list) {
    if (each == &but) continue;
    const std::unique_lock lock(each->busy_, std::try_to_lock);
    if (!lock.owns_lock() || each->health_->broken()) continue;
    try {
      each->progress();
    } catch (...) {
      // It is unusable now, and says so at its next call.
    }
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

bool NodeTraffic::has_room(std::uint64_t number) const {
  if (number < NodeSeat::slots) return true;
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

void NodeTraffic::finish_gathers(const Subject& subject) {
  wait(subject, [this](int peer) {
    return std::any_of(
        live_.begin(), live_.end(),
        [peer](const NodeOperation* each) { return each->lacks(peer); });
  });
}

void NodeTraffic::relax(int looks, int peer, std::uint32_t bell) const {
  if (looks < eager_looks) return;
  if (looks < yielding_looks)
    std::this_thread::yield();
  else
    seats_.sleep(peer, bell, nap);
}

void NodeTraffic::break_off(const Subject& subject,
                            std::string_view why) noexcept {
  health_->break_off(subject, why);
  seats_.mine().gone.store(1, std::memory_order_release);
  seats_.ring();
}

void NodeTraffic::fail(const std::string& message) {
  health_->break_off(message);
  seats_.mine().gone.store(1, std::memory_order_release);
  seats_.ring();
  throw CommunicationError(message);
}

void NodeTraffic::time_out(const Subject& subject, const std::string& time,
                           const std::vector<int>& missing) {
  fail(concat(detail::name_of(subject), " timed out after ", time, " on rank ",
              rank_of(self()), ": ", no_answer_from(missing, size() - 1),
              same_calls));
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
