// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// The collectives of a data-parallel group. Everything the optimizer sends
// goes through this interface; a backend is one implementation of it.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <kzero/contribution.hpp>
#include <kzero/dtype.hpp>
#include <kzero/shard_table.hpp>
#include <memory>
#include <span>
#include <string>

namespace kzero {

/// What a collective is about; named in the messages of its errors. The text
/// must outlive the call (a literal).
struct Subject {
  const char* operation = "collective";
  std::int64_t bucket = -1;  // -1: not about a bucket
};

struct ReduceArguments {
  const void* bucket = nullptr;  // this rank's gradients, shards.total() long
  DType dtype = DType::float32;
  ShardTable shards;  // in elements
  /// What peers send is taken in pieces of about this many bytes.
  std::int64_t piece_bytes = std::int64_t{25} << 20;
  /// Pieces end on multiples of this many elements, and hold at least as many.
  std::int64_t piece_granularity = 1;
  /// With it, a communicator may add up what several ranks contribute before
  /// it sends that. The same on every rank: null or not.
  OrderedSum sum = nullptr;
  std::int64_t index = 0;  // of the bucket, for messages; -1: of none
};

struct GatherArguments {
  void* bucket = nullptr;  // this rank's shard is in place; the others arrive
  DType dtype = DType::float32;
  ShardTable shards;       // in elements
  std::int64_t index = 0;  // of the bucket, for messages; -1: of none
};

/// A collective under way. Belongs to the communicator, which reuses it.
class PendingOperation {
 public:
  /// Advances it; true when it has ended. Throws CommunicationError.
  virtual bool test() = 0;
  /// Waits for its end. Throws CommunicationError, also after the timeout.
  virtual void wait() = 0;
  /// This rank has no use any more for what arrives: the operation ends as soon
  /// as peers have what they need, and needs no more calls of this rank where
  /// the backend can do that. Throws CommunicationError.
  virtual void leave() {}
  /// Gives it back. Called once, by Ticket.
  virtual void release() noexcept = 0;

 protected:
  ~PendingOperation() = default;
};

/// A reduction under way.
class PendingReduction {
 public:
  /// Waits for the next piece of this rank's shard, in ascending order; null
  /// when there is no more: of the bucket, this rank's own shard may be written
  /// again. A piece is valid until the next call. Throws CommunicationError.
  virtual const Contributions* next() = 0;
  /// Advances it; true when next() will not wait.
  virtual bool test() = 0;
  /// After next() has returned null: waits until the whole bucket may be
  /// written again, which ends the reduction. Throws CommunicationError; and
  /// InvalidArgument when next() has not.
  virtual void wait() {}
  virtual void release() noexcept = 0;

 protected:
  ~PendingReduction() = default;
};

namespace detail {
struct Release {
  template <class T>
  void operator()(T* pending) const noexcept {
    pending->release();
  }
};
}  // namespace detail

/// Move-only handles. One that is dropped before its end makes the
/// communicator unusable, as an error does: peers may still read or write. An
/// operation ends with wait(), or with test() that returns true; a reduction
/// with wait() alone.
using Ticket = std::unique_ptr<PendingOperation, detail::Release>;
using ReductionTicket = std::unique_ptr<PendingReduction, detail::Release>;

enum class Extremum { minimum, maximum };

/// Collectives are called by every rank in the same order, by one thread at a
/// time. Buffers stay valid and untouched until the operation has ended. Every
/// wait is bounded by timeout(); after a CommunicationError the communicator is
/// unusable, every later call throws, and buffers of allocate() that may still
/// be written to are leaked on purpose; memory of the caller's own has to stay
/// until MPI ends where an operation on it has not ended. No destructor waits
/// for another rank.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::chrono::milliseconds timeout() const = 0;

  /// Backend, size and what led to the choice: one line for people.
  virtual std::string describe() const = 0;

  /// A communicator of the same kind, options and ranks, whose operations are
  /// apart from this one's: the order of calls, errors and what they make
  /// unusable are its own. Memory of allocate() serves both. Collective; throws
  /// CommunicationError when this one is unusable, and makes it so when a rank
  /// does not come.
  virtual std::shared_ptr<Communicator> duplicate() = 0;

  /// Whether this communicator and its duplicates may be used by several
  /// threads at a time, one thread each.
  virtual bool concurrent() const = 0;

  /// Memory that this communicator and its duplicates send from and receive
  /// into best: aligned to 64 bytes, not initialised. Any thread may free it.
  /// With node a forked process does not get a copy of it: both write to one.
  /// Local. Zero bytes give a valid pointer.
  virtual std::shared_ptr<void> allocate(std::int64_t bytes) = 0;

  /// Memory that the ranks of a node have in common: one for all of them, at
  /// different addresses, with the content that any of them has written. Of a
  /// rank alone where it shares none (mpi, self). As allocate() otherwise: in
  /// it a gather brings what comes from other nodes alone, and a broadcast
  /// comes once a node; who reads it while such an operation is under way on
  /// any rank of the node sees old or new values. Collective; throws Error on
  /// every rank when one has no memory for it.
  virtual std::shared_ptr<void> allocate_common(std::int64_t bytes) {
    return allocate(bytes);
  }

  /// How many ranks have such memory in common with this one, itself among
  /// them, and how many of those have a lower rank.
  struct Sharing {
    int ranks = 1;
    int place = 0;
  };
  virtual Sharing sharing() const { return {}; }

  /// Bytes that it holds now to take in what peers send.
  virtual std::int64_t staging_bytes() const = 0;

  /// Bytes of gradients and parameters that other ranks have had from this one,
  /// by messages or in shared memory, since construction: of reductions and of
  /// gathers by start_all_gather, with an index of 0 or more. Duplicates count
  /// for themselves. Called by the thread that uses the communicator.
  virtual std::int64_t bytes_sent() const = 0;

  virtual ReductionTicket start_reduce(const ReduceArguments&) = 0;
  virtual Ticket start_all_gather(const GatherArguments&) = 0;

  /// bytes from every rank, in rank order, to every rank: size() * bytes
  /// arrive in receive. For small data.
  virtual void all_gather(const void* send, std::int64_t bytes, void* receive,
                          Subject) = 0;

  /// data of root to every rank.
  virtual void broadcast(void* data, std::int64_t bytes, int root, Subject) = 0;

  /// Every rank's send (shards.size(rank) elements of element_bytes) to root's
  /// receive, at shards.range(rank). receive is not read elsewhere.
  virtual void gather(const void* send, void* receive, const ShardTable& shards,
                      std::int64_t element_bytes, int root, Subject) = 0;

  /// The reverse of gather.
  virtual void scatter(const void* send, void* receive,
                       const ShardTable& shards, std::int64_t element_bytes,
                       int root, Subject) = 0;

  virtual void barrier(Subject) = 0;

  /// Sums over the ranks, added in rank order: the same bits on every rank.
  void all_reduce_sum(std::span<double> values, Subject);
  /// Modulo 2^64.
  void all_reduce_sum(std::span<std::int64_t> values, Subject);
  void all_reduce(std::span<std::int64_t> values, Extremum, Subject);
};

/// automatic: self for one rank; else what the environment variable
/// KZERO_BACKEND names (mpi or node); else node where any two ranks share a
/// node, and mpi where each has one of its own.
/// self: one rank; calls no MPI function.
/// mpi: messages between pairs of ranks.
/// node: ranks of a node read one another's memory, and add up what they send
/// to other nodes as far as the order of the sum allows: blocks of 2^k ranks
/// that follow one another. Where memory cannot be shared, all ranks together
/// take mpi. describe() says what was taken and why.
enum class Backend { automatic, self, mpi, node };

struct CommunicatorOptions {
  Backend backend = Backend::automatic;
  /// Bound on every wait for other ranks.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  /// Longer messages are split (MPI counts are 32-bit).
  std::int64_t message_bytes = std::int64_t{1} << 30;
  /// Ranks of one machine that give different numbers count as being on
  /// different nodes, which share no memory: parts of a machine far from one
  /// another, say. Instead of 0, rank r has the number r / n where the
  /// environment variable KZERO_RANKS_PER_NODE is n.
  std::int64_t node = 0;
};

/// Makes a communicator over the ranks of the given one, which may be any
/// intracommunicator, and which it duplicates; MPI_ERRORS_RETURN is set on the
/// duplicate only. Collective over it.
/// Throws InvalidArgument when MPI is not initialised (or is finalised), for
/// MPI_COMM_NULL and an intercommunicator; on every rank when any has options
/// out of range, backend self with more than one rank, or another
/// message_bytes or backend than the others; CommunicationError when peers do
/// not come. With backend self and MPI not initialised, the given communicator
/// is not looked at.
std::shared_ptr<Communicator> make_communicator(
    MPI_Comm communicator, CommunicatorOptions options = {});

}  // namespace kzero
