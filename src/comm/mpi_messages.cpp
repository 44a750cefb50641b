// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/mpi_messages.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <thread>

#include "comm/all_progress.hpp"
#include "comm/missing_ranks.hpp"
#include "comm/wait_clock.hpp"
#include "core/message.hpp"

namespace kzero::detail {

MessageSet::MessageSet(MpiLink& link) : link_(link) {
  // Which set is used for what is a matter of luck as well: room for the usual.
  constexpr std::size_t usual = 16;
  messages_.reserve(usual);
  requests_.reserve(usual);
  completed_.reserve(usual);
  statuses_.reserve(usual);
  link_.enlist(*this);
}

MessageSet::~MessageSet() { link_.dismiss(*this); }

void MessageSet::begin(const Activity& activity, std::size_t limit) {
  posted_ = 0;
  activity_ = activity;
  limit_ = limit;
}

void MessageSet::receive(void* data, std::int64_t bytes, int peer) {
  auto* next = static_cast<std::byte*>(data);
  const int tag = link_.tag(activity_, bytes);
  do {
    const std::int64_t part = std::min(bytes, link_.message_bytes());
    const int count = static_cast<int>(part);
    link_.check(MPI_Irecv(next, count, MPI_BYTE, peer, tag,
                          link_.communicator(), add({peer, count, true})),
                "MPI_Irecv", activity_.subject);
    bytes -= part;
    if (bytes > 0) next += part;
  } while (bytes > 0);
}

void MessageSet::send(const void* data, std::int64_t bytes, int peer) {
  const auto* next = static_cast<const std::byte*>(data);
  const int tag = link_.tag(activity_, bytes);
  do {
    const std::int64_t part = std::min(bytes, link_.message_bytes());
    const int count = static_cast<int>(part);
    link_.check(MPI_Isend(next, count, MPI_BYTE, peer, tag,
                          link_.communicator(), add({peer, count, false})),
                "MPI_Isend", activity_.subject);
    bytes -= part;
    if (bytes > 0) next += part;
  } while (bytes > 0);
}

bool MessageSet::test(Until until) {
  link_.health()->require(activity_.subject);
  if (is_left(until)) progress();
  return !is_left(until);
}

void MessageSet::wait(Until until) {
  link_.health()->require(activity_.subject);
  wait_for([&] { return !is_left(until); }, until);
}

template <class IsDone>
void MessageSet::wait_for(IsDone is_done, Until until) {
  if (is_done()) return;
  WaitClock clock(link_.timeout());
  while (true) {
    progress();
    if (is_done()) return;
    if (clock.expired()) time_out(clock.text(), until);
    let_all_go_on();
    link_.health()->require(activity_.subject);
    // Ranks may outnumber the cores.
    std::this_thread::yield();
  }
}

MPI_Request* MessageSet::add(const Message& message) {
  wait_for([&] { return requests_.size() < limit_; }, Until::ended);
  // How many are under way at a time is a matter of luck; how many are posted
  // is not.
  const std::size_t room = std::min(++posted_, limit_);
  if (requests_.capacity() < room) {
    const std::size_t more = std::max(room, 2 * requests_.capacity());
    messages_.reserve(more);
    requests_.reserve(more);
  }
  messages_.push_back(message);
  requests_.push_back(MPI_REQUEST_NULL);
  if (message.is_receive) ++receives_;
  // A poll of all of them must not be the first to want room.
  completed_.reserve(requests_.capacity());
  statuses_.reserve(requests_.capacity());
  return &requests_.back();
}

void MessageSet::progress() {
  const std::size_t size = requests_.size();
  if (size == 0) return;
  completed_.resize(size);
  statuses_.resize(size);
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(size), requests_.data(),
                                &count, completed_.data(), statuses_.data());
  if (code == MPI_SUCCESS && count == 0) return;
  completed_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  check_completed(code);
  remove_completed();
}

void MessageSet::check_completed(int code) {
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) (void)MPI_Error_class(code, &error_class);
  const bool in_status = error_class == MPI_ERR_IN_STATUS;
  if (!in_status) link_.check(code, "MPI_Testsome", activity_.subject);

  const auto fail = [&](const Message& message, const std::string& problem) {
    link_.fail(concat(name_of(activity_.subject), " failed on rank ",
                      link_.rank(), ": rank ", message.peer, ' ', problem));
  };
  for (std::size_t i = 0; i < completed_.size(); ++i) {
    const Message& message = messages_[static_cast<std::size_t>(completed_[i])];
    const MPI_Status& status = statuses_[i];
    // MPI sets the field only when it says so.
    if (in_status && status.MPI_ERROR != MPI_SUCCESS) {
      (void)MPI_Error_class(status.MPI_ERROR, &error_class);
      if (error_class == MPI_ERR_TRUNCATE) {
        fail(message, concat("sent more than the expected ",
                             counted(message.bytes, "byte"), same_calls));
      }
      fail(message, concat("cannot be reached (",
                           mpi_failure(status.MPI_ERROR, "MPI_Testsome",
                                       SourceLine::current()),
                           ")"));
    }
    if (!message.is_receive) continue;
    int received = 0;
    link_.check(MPI_Get_count(&status, MPI_BYTE, &received), "MPI_Get_count",
                activity_.subject);
    if (received != message.bytes) {
      fail(message, concat("sent ", counted(received, "byte"), ", expected ",
                           message.bytes, same_calls));
    }
  }
}

void MessageSet::remove_completed() noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) {
      if (messages_[i].is_receive) --receives_;
      continue;
    }
    requests_[kept] = requests_[i];
    messages_[kept] = messages_[i];
    ++kept;
  }
  requests_.resize(kept);
  messages_.resize(kept);
}

void MessageSet::time_out(const std::string& time, Until until) {
  std::vector<int> missing;
  std::string unexpected;
  for (const Message& message : messages_) {
    if (until == Until::received && !message.is_receive) continue;
    missing.push_back(message.peer);
    if (message.is_receive && unexpected.empty()) {
      unexpected =
          link_.describe_unexpected(activity_, message.peer, message.bytes);
    }
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  link_.fail(
      concat(name_of(activity_.subject), " timed out after ", time, " on rank ",
             link_.rank(), ": ", no_answer_from(missing, link_.size() - 1),
             activity_.relayed ? may_wait_itself : "", unexpected, same_calls));
}

void MessageSet::abandon() noexcept {
  // A send cannot be taken back; it ends when the peer takes it, or never.
  // First all are cancelled: to free one lets the others go on.
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != MPI_REQUEST_NULL && messages_[i].is_receive) {
      (void)MPI_Cancel(&requests_[i]);
    }
  }
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) (void)MPI_Request_free(&request);
  }
  requests_.clear();
  messages_.clear();
  receives_ = 0;
}

}  // namespace kzero::detail
