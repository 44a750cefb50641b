// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// A communicator that is as slow as a given network: for tests and benchmarks,
// on one machine, of what hides behind work.
#pragma once

#include <chrono>
#include <kzero/communicator.hpp>
#include <memory>

namespace kzero {

struct SimulatedLink {
  std::chrono::nanoseconds latency{0};
  double bytes_per_second = 1e9;
};

/// Wraps a communicator; the results are the same. All ranks run on one
/// machine, because they compare the time of its steady clock.
///
/// The communicator and its duplicates have one link in each process, through
/// which transfers go one after another. A reduction or all-gather of a bucket
/// starts when every rank has posted it, those posted before it have ended, and
/// the link is free. It takes latency + bytes / bytes_per_second, where bytes
/// is the larger of what this rank sends and what it receives. A piece of a
/// reduction comes when the bytes up to its end have passed. The other
/// collectives do their work and then take the time of a transfer. One rank
/// alone has no bytes to send: the latency is left.
///
/// Faults show: until it ends, a gather's destination holds 0xFF in every byte
/// (NaN in all types), and what is sent is compared at the end with what it was
/// in the beginning. Where it was written to (but for this rank's own shard in
/// a reduction), test(), wait() or next() throws an Error that names operation
/// and bucket.
///
/// What lies behind a deadline is a matter of time, not of polls: the first
/// test() after it gives true, as far as the wrapped communicator can move the
/// data by then. One that moves data only when it is called (mpi) needs every
/// rank to call something; test() then waits for it, a little.
///
/// Collective. Throws InvalidArgument without a communicator; on every rank
/// when any has a negative latency, a speed that is not a positive finite
/// number, or other figures than the others.
std::shared_ptr<Communicator> make_simulated_communicator(
    std::shared_ptr<Communicator> inner, SimulatedLink link);

}  // namespace kzero
