// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Tables of wrong calls, and what is expected of each: the right exception on
// every rank, whose message names what was wrong.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <kzero/error.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/hash.hpp"

namespace kzero::test {

enum class Throws {
  nothing,
  invalid_argument,
  checkpoint_error,
  communication_error,
  nonfinite_error,
  something_else
};

/// local: each rank finds the fault by itself.
/// collective: they find it together, and all say the same.
enum class Found { local, collective };

struct WrongCall {
  std::string name;
  std::function<void()> call;
  /// Parts of the message: the offending name and the offending value.
  std::vector<std::string> says;
  Found found = Found::local;
  Throws throws = Throws::invalid_argument;
};

using WrongCalls = std::vector<WrongCall>;

struct Outcome {
  Throws thrown = Throws::nothing;
  std::string message;
};

inline Outcome outcome_of(const std::function<void()>& call) {
  try {
    call();
    return {Throws::nothing, "nothing was thrown"};
  } catch (const InvalidArgument& error) {
    return {Throws::invalid_argument, error.what()};
  } catch (const CheckpointError& error) {
    return {Throws::checkpoint_error, error.what()};
  } catch (const CommunicationError& error) {
    return {Throws::communication_error, error.what()};
  } catch (const NonfiniteError& error) {
    return {Throws::nonfinite_error, error.what()};
  } catch (const std::exception& error) {
    return {Throws::something_else, error.what()};
  }
}

/// Everybody's value, by rank. Throws when a rank does not come.
inline std::vector<std::uint64_t> all_ranks_have(std::uint64_t value) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  struct Exchange {
    std::uint64_t mine = 0;
    std::vector<std::uint64_t> all;
  };
  auto exchange = std::make_unique<Exchange>();
  exchange->mine = value;
  exchange->all.resize(static_cast<std::size_t>(ranks));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(&exchange->mine, 1, MPI_UINT64_T, exchange->all.data(), 1,
                 MPI_UINT64_T, MPI_COMM_WORLD, &request);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int done = 0; done == 0; std::this_thread::yield()) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0 && std::chrono::steady_clock::now() > deadline) {
      static_cast<void>(exchange.release());  // MPI may still write to it
      throw std::runtime_error("another rank still waits in the wrong call");
    }
  }
  return std::move(exchange->all);
}

inline void expect_refused(const WrongCall& row) {
  SCOPED_TRACE("wrong call: " + row.name);
  const Outcome outcome = outcome_of(row.call);
  EXPECT_EQ(static_cast<int>(outcome.thrown), static_cast<int>(row.throws))
      << outcome.message;
  EXPECT_FALSE(row.says.empty());
  for (const std::string& part : row.says)
    EXPECT_NE(outcome.message.find(part), std::string::npos)
        << "'" << part << "' is not in: " << outcome.message;
  // "problem: what to do", or at least "what: problem".
  if (row.throws == Throws::invalid_argument) {
    EXPECT_NE(outcome.message.find(": "), std::string::npos) << outcome.message;
  }

  for (const std::uint64_t thrown :
       all_ranks_have(static_cast<std::uint64_t>(outcome.thrown)))
    EXPECT_EQ(thrown, static_cast<std::uint64_t>(row.throws));
  const auto messages = all_ranks_have(detail::hash(outcome.message));
  if (row.found == Found::collective) {
    for (const std::uint64_t message : messages)
      EXPECT_EQ(message, messages.front())
          << "ranks say different things, this one: " << outcome.message;
  }
}

/// Makes all the calls, on every rank, and calls after() behind each.
inline void expect_refused(
    const WrongCalls& rows, const std::function<void()>& after = [] {}) {
  EXPECT_FALSE(rows.empty());
  for (const WrongCall& row : rows) {
    expect_refused(row);
    SCOPED_TRACE("after the wrong call: " + row.name);
    after();
  }
}

}  // namespace kzero::test
