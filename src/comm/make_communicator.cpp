// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <kzero/communicator.hpp>
#include <kzero/error.hpp>
#include <limits>
#include <optional>
#include <string>

#include "comm/check_mpi.hpp"
#include "comm/duplicate.hpp"
#include "comm/launch_check.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/node_communicator.hpp"
#include "comm/self_communicator.hpp"
#include "core/log.hpp"
#include "core/message.hpp"

namespace kzero {

namespace {

using detail::check_mpi;
using detail::concat;

/// What is wrong with the options, for people; empty when nothing is.
std::string problem_of(const CommunicatorOptions& options) {
  if (options.backend > Backend::node || options.backend < Backend::automatic) {
    return concat("unknown Backend (expected a code from 0 to 3, got ",
                  static_cast<int>(options.backend), "): use an enumerator");
  }
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (options.message_bytes < 1 || options.message_bytes > most) {
    return concat("message_bytes is ", options.message_bytes, ": give 1 to ",
                  most);
  }
  if (options.timeout.count() < 1) {
    return concat("the timeout of a communicator is ", options.timeout.count(),
                  " ms: give 1 ms or more");
  }
  return {};
}

std::string problem_of(const CommunicatorOptions& options, int ranks) {
  if (options.backend == Backend::self && ranks > 1) {
    return concat("backend self is for one rank, the communicator has ", ranks,
                  ": choose another backend, or give MPI_COMM_SELF");
  }
  return problem_of(options);
}

void throw_if_any(const std::string& problem) {
  if (!problem.empty()) throw InvalidArgument(problem);
}

/// Throws unless MPI can be called.
void require_mpi() {
  int initialized = 0;
  int finalized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized == 0) {
    throw InvalidArgument(
        "make_communicator before MPI is initialised: call MPI_Init_thread or "
        "kzero::initialize first (or choose backend self, which needs no MPI)");
  }
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  if (finalized != 0) {
    throw InvalidArgument(
        "make_communicator after MPI_Finalize: make it before, and let "
        "MPI_Finalize be the last call");
  }
}

bool mpi_is_usable() {
  int initialized = 0;
  int finalized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  return initialized != 0 && finalized == 0;
}

/// Ranks of the given communicator. Throws InvalidArgument unless it is one
/// that can be used.
int ranks_of(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL) {
    throw InvalidArgument(
        "make_communicator of MPI_COMM_NULL: ranks that are in no group do "
        "not call it");
  }
  int inter = 0;
  check_mpi(MPI_Comm_test_inter(communicator, &inter), "MPI_Comm_test_inter");
  if (inter != 0) {
    throw InvalidArgument(
        "make_communicator of an intercommunicator: give an "
        "intracommunicator (MPI_Intercomm_merge makes one)");
  }
  int size = 0;
  check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  return size;
}

constexpr const char* backend_variable = "KZERO_BACKEND";

/// What takes the place of automatic, and what describe() says of the choice.
struct Choice {
  Backend backend = Backend::automatic;
  std::string reason;
};

/// Of this rank. problem: what is wrong with its environment.
Choice choose(Backend asked, std::string& problem) {
  if (asked != Backend::automatic) return {asked, " (chosen by option)"};
  const char* const name = std::getenv(backend_variable);
  if (name == nullptr || *name == '\0') return {};
  const std::string_view text = name;
  for (const auto& [backend, known] :
       {std::pair{Backend::mpi, "mpi"}, {Backend::node, "node"}})
    if (text == known)
      return {backend, concat(" (chosen by ", backend_variable, ")")};
  if (problem.empty() && text != "automatic")
    problem = concat(backend_variable, " is ", detail::quoted(text),
                     ": set it to automatic, mpi or node, or unset it");
  return {};
}

constexpr const char* node_size_variable = "KZERO_RANKS_PER_NODE";

/// Ranks of a node by the environment; 0 where that does not say. problem: what
/// is wrong with it.
int forced_node_size(std::string& problem) {
  const char* const text = std::getenv(node_size_variable);
  if (text == nullptr || *text == '\0') return 0;
  int size = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, size);
  if (error == std::errc() && stop == end && size > 0) return size;
  if (problem.empty())
    problem = concat(node_size_variable, " is ", detail::quoted(text),
                     ": set it to a number of ranks, or unset it");
  return 0;
}

/// With the choices of all ranks, which are the same. Collective.
std::shared_ptr<Communicator> share_nodes(
    std::shared_ptr<detail::MpiCommunicator> messages, Choice choice,
    std::int64_t mark) {
  detail::NodePlaces places = detail::find_places(*messages, mark);
  const auto with_messages = [&](const std::string& why) {
    messages->say(concat(choice.reason, choice.reason.empty() ? "" : ";", " (",
                         why, ")"));
    return messages;
  };
  const auto nodes = static_cast<int>(places.nodes.size());
  if (nodes == messages->size() && nodes > 1)
    return with_messages("no two ranks share a node");
  if (!places.problem.empty())
    return with_messages(concat("no shared memory: ", places.problem));
  std::string problem = detail::try_sharing(*messages, places);
  if (!problem.empty())
    return with_messages(concat("no shared memory: ", problem));
  auto seats = detail::take_seats(*messages, places, problem);
  if (!seats) return with_messages(concat("no shared memory: ", problem));
  if (choice.reason.empty())
    choice.reason = nodes == 1 ? " (all share a node)" : " (ranks share nodes)";
  return std::make_shared<detail::NodeCommunicator>(
      messages, detail::NodeGroup{std::move(places), *std::move(seats)},
      std::move(choice.reason));
}

}  // namespace

std::shared_ptr<Communicator> make_communicator(MPI_Comm communicator,
                                                CommunicatorOptions options) {
  if (!mpi_is_usable()) {
    throw_if_any(problem_of(options));
    if (options.backend == Backend::self) {
      return std::make_shared<detail::SelfCommunicator>(options.timeout,
                                                        " (chosen by option)");
    }
  }
  require_mpi();
  const int ranks = ranks_of(communicator);
  std::string problem = problem_of(options, ranks);
  if (options.backend == Backend::self && ranks == 1) {
    throw_if_any(problem);
    return std::make_shared<detail::SelfCommunicator>(options.timeout,
                                                      " (chosen by option)");
  }

  Choice choice = choose(options.backend, problem);
  if (ranks == 1) {
    throw_if_any(problem);
    if (choice.backend == Backend::automatic) {
      choice.reason = " (the communicator has one rank)";
    }
    if (const std::optional warning = detail::lonely_rank_warning()) {
      detail::log(LogLevel::warning, *warning);
      choice.reason += concat("; warning: ", *warning);
    }
    if (choice.backend == Backend::automatic) {
      return std::make_shared<detail::SelfCommunicator>(
          options.timeout, std::move(choice.reason));
    }
  }
  const int node_size = forced_node_size(problem);
  // A rank whose options are wrong meets the others all the same, so that none
  // waits for it.
  if (options.timeout.count() < 1) {
    options.timeout = CommunicatorOptions().timeout;
  }
  auto messages = std::make_shared<detail::MpiCommunicator>(
      detail::duplicate(communicator, options.timeout,
                        {"making a communicator"}, "make_communicator"),
      options, choice.backend, choice.reason, problem);
  if (choice.backend == Backend::mpi) return messages;
  if (options.node == 0 && node_size > 0)
    options.node = messages->rank() / node_size;
  return share_nodes(std::move(messages), std::move(choice), options.node);
}

}  // namespace kzero
