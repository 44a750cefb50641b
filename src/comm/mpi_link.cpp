// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/mpi_link.hpp"

#include <algorithm>
#include <kzero/error.hpp>

#include "comm/mpi_messages.hpp"
#include "core/message.hpp"

namespace kzero::detail {

namespace {

// 3 bits of kind, 3 of mark and 9 of number: the 15 that MPI guarantees.
constexpr int marks = 8;
constexpr int numbers = 512;

}  // namespace

bool mpi_finalized() noexcept {
  int finalized = 0;
  return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
}

MpiLink::MpiLink(MPI_Comm duplicate, std::chrono::milliseconds timeout)
    : communicator_(duplicate), timeout_(timeout) {
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
}

MpiLink::~MpiLink() {
  if (!health_->broken() && !mpi_finalized()) {
    (void)MPI_Comm_free(&communicator_);
  }
}

Activity MpiLink::begin(Collective kind, const Subject& subject,
                        std::int64_t mark) {
  health_->require(subject);
  const int low = static_cast<int>(static_cast<std::uint64_t>(mark) % marks);
  const int tag = (static_cast<int>(kind) * marks + low) * numbers + calls_;
  calls_ = (calls_ + 1) % numbers;
  return {subject, tag, false};
}

void MpiLink::fail(const std::string& message) {
  health_->break_off(message);
  abandon();
  throw CommunicationError(message);
}

void MpiLink::check(int code, const char* call, const Subject& subject,
                    SourceLine where) {
  if (code == MPI_SUCCESS) return;
  fail(concat(name_of(subject), " failed on rank ", rank_, ": ",
              mpi_failure(code, call, where)));
}

void MpiLink::break_off_dropped(const Subject& subject) noexcept {
  break_off_at(subject, dropped);
}

void MpiLink::break_off_at(const Subject& subject,
                           std::string_view why) noexcept {
  health_->break_off(subject, why);
  abandon();
}

void MpiLink::enlist(MessageSet& messages) { sets_.push_back(&messages); }

void MpiLink::dismiss(MessageSet& messages) noexcept {
  std::erase(sets_, &messages);
}

void MpiLink::abandon() noexcept {
  if (mpi_finalized()) return;
  for (MessageSet* messages : sets_) messages->abandon();
}

}  // namespace kzero::detail
