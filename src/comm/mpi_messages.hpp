// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Messages under way between this rank and others, and the one routine that
// waits for them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "comm/mpi_link.hpp"

namespace kzero::detail {

/// How far a wait goes.
enum class Until { received, ended };

/// Sends and receives of one activity. Reused by the next one: its memory is
/// kept.
class MessageSet {
 public:
  explicit MessageSet(MpiLink& link);
  ~MessageSet();
  MessageSet(const MessageSet&) = delete;
  MessageSet& operator=(const MessageSet&) = delete;

  /// Starts an activity; nothing may be under way. With a limit, posting waits
  /// while so many messages are under way.
  void begin(const Activity& activity,
             std::size_t limit = std::numeric_limits<std::size_t>::max());

  /// Posts a transfer, split by the link's message_bytes; no bytes are one
  /// empty message. Both sides post the same transfers in the same order.
  void receive(void* data, std::int64_t bytes, int peer);
  void send(const void* data, std::int64_t bytes, int peer);

  /// True when there is nothing left to wait for.
  bool test(Until until);

  /// Throws CommunicationError, also after the timeout, which then says which
  /// ranks are missing.
  void wait(Until until);

  /// Forgets all messages; receives are cancelled where that is possible.
  void abandon() noexcept;

 private:
  struct Message {
    int peer = 0;
    int bytes = 0;
    bool is_receive = false;
  };

  bool is_left(Until until) const {
    return until == Until::ended ? !requests_.empty() : receives_ > 0;
  }
  /// Gives the message's request, for MPI to fill in.
  MPI_Request* add(const Message& message);
  void progress();
  void check_completed(int code);
  void remove_completed() noexcept;
  template <class IsDone>
  void wait_for(IsDone is_done, Until until);
  [[noreturn]] void time_out(const std::string& time, Until until);

  MpiLink& link_;
  Activity activity_;
  std::size_t limit_ = 0;
  std::size_t receives_ = 0;
  std::size_t posted_ = 0;  // since begin()
  // Side by side, as MPI_Testsome wants them: entry i is about request i.
  std::vector<MPI_Request> requests_;
  std::vector<Message> messages_;
  // What MPI_Testsome gives.
  std::vector<int> completed_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace kzero::detail
