// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// One rank's end of a duplicate communicator: tags, timeout, and what happens
// when something goes wrong.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <kzero/communicator.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/check_mpi.hpp"
#include "comm/health.hpp"

namespace kzero::detail {

class MessageSet;

/// Kinds of collectives; each has tags of its own.
enum class Collective : std::uint8_t {
  reduce,
  all_gather,
  small_all_gather,
  broadcast,
  gather,
  scatter,
  barrier,
  farewell,
};

/// One call of a collective: what its messages and its errors are marked with.
struct Activity {
  Subject subject;
  int tag = 0;  // without the size
  /// Data passes through other ranks: the one that is waited for may itself be
  /// waiting for the one that is missing.
  bool relayed = false;
};

class MpiLink {
 public:
  /// Takes the communicator over.
  MpiLink(MPI_Comm duplicate, std::chrono::milliseconds timeout,
          std::shared_ptr<Health> health);
  /// Waits for nobody. Frees the communicator unless it is kept or broken, or
  /// MPI is finalised.
  ~MpiLink();
  MpiLink(const MpiLink&) = delete;
  MpiLink& operator=(const MpiLink&) = delete;

  MPI_Comm communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  /// Never frees the communicator.
  void keep_communicator() { is_kept_ = true; }

  /// Longer messages are split. The same on every rank.
  std::int64_t message_bytes() const { return message_bytes_; }
  void set_message_bytes(std::int64_t bytes) { message_bytes_ = bytes; }

  /// Bytes that went out for buckets, as Communicator::bytes_sent() has them.
  std::int64_t bytes_sent() const { return bytes_sent_; }
  void count_sent(const Subject& subject, std::int64_t bytes) {
    if (subject.bucket >= 0) bytes_sent_ += bytes;
  }

  /// The rank that is distance (positive or negative) further round the ring.
  int neighbour(int distance) const {
    return (rank_ + distance % size_ + size_) % size_;
  }

  /// The next call of a collective. Throws CommunicationError when broken.
  Activity begin(Collective kind, const Subject& subject,
                 std::int64_t mark = 0);

  /// The tag of a transfer of so many bytes. It holds the kind, the number of
  /// the call (modulo 512), the mark (modulo 8: bucket or root) and the size
  /// (modulo what is left of MPI's tags), so that calls that differ between
  /// ranks do not match: they time out. Where the numbers wrap and tags are
  /// equal, messages match in the order of the calls, as MPI promises.
  ///
  /// The size is there because MPICH hands a message that is longer than its
  /// receive to the error handler of MPI_COMM_SELF, which is the caller's and
  /// ends the program by default.
  int tag(const Activity& activity, std::int64_t bytes) const {
    return activity.tag +
           tags_without_size * static_cast<int>(bytes % size_marks_);
  }

  /// What a peer has sent that does not fit an activity that waits for it, in
  /// words; empty when it has sent nothing.
  std::string describe_unexpected(const Activity& expected, int peer,
                                  std::int64_t bytes) const;

  const std::shared_ptr<Health>& health() const { return health_; }

  /// Makes the communicator unusable and throws CommunicationError with the
  /// message. Receives that are posted are cancelled where MPI can.
  [[noreturn]] void fail(const std::string& message);

  /// The checker of the calls that send and receive.
  void check(int code, const char* call, const Subject& subject,
             SourceLine where = SourceLine::current());

  /// For a ticket that is dropped before its end.
  void break_off_dropped(const Subject& subject) noexcept;

  /// Makes the communicator unusable, as fail() does.
  void break_off(const Subject& subject, std::string_view why) noexcept;

  /// Runs a part of a collective. What ends it half-way (no memory, say) breaks
  /// the communicator, because peers wait for the rest.
  template <class F>
  decltype(auto) run(const Subject& subject, F&& part) {
    try {
      return part();
    } catch (const std::exception& error) {
      break_off(subject, error.what());
      throw;
    }
  }

  /// Sets whose messages break_off abandons.
  void enlist(MessageSet& messages);
  void dismiss(MessageSet& messages) noexcept;

 private:
  static constexpr int tags_without_size = 1 << 15;

  void abandon() noexcept;

  MPI_Comm communicator_;
  bool is_kept_ = false;
  int rank_ = 0;
  int size_ = 0;
  std::chrono::milliseconds timeout_;
  std::int64_t message_bytes_ = std::int64_t{1} << 30;
  std::int64_t bytes_sent_ = 0;
  int calls_ = 0;  // of collectives, modulo what a tag holds
  std::shared_ptr<Health> health_;
  std::int64_t size_marks_ = 1;
  std::vector<MessageSet*> sets_;
};

/// Whether MPI can no longer be called.
bool mpi_finalized() noexcept;

}  // namespace kzero::detail
