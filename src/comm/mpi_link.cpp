// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

#include "comm/mpi_link.hpp"

#include <algorithm>
#include <kzero/error.hpp>
#include <utility>

#include "comm/mpi_messages.hpp"
#include "core/message.hpp"

namespace kzero::detail {

namespace {

// 3 bits of kind, 3 of mark and 9 of number: the 15 that MPI guarantees.
constexpr int marks = 8;
constexpr int numbers = 512;
constexpr const char* kind_names[marks] = {
    "a reduction",   "an all-gather of a bucket",
    "an all-gather", "a broadcast",
    "a gather",      "a scatter",
    "a barrier",     "the end of MPI"};

}  // namespace

bool mpi_finalized() noexcept {
  int finalized = 0;
  return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
}

MpiLink::MpiLink(MPI_Comm duplicate, std::chrono::milliseconds timeout,
                 std::shared_ptr<Health> health)
    : communicator_(duplicate), timeout_(timeout), health_(std::move(health)) {
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  int* largest_tag = nullptr;
  int has_largest = 0;
  check_mpi(
      MPI_Comm_get_attr(communicator_, MPI_TAG_UB, &largest_tag, &has_largest),
      "MPI_Comm_get_attr");
  if (has_largest != 0) {
    size_marks_ = (std::int64_t{*largest_tag} + 1) / tags_without_size;
    // Odd, so that sizes that differ by a power of two differ here as well.
    if (size_marks_ % 2 == 0) --size_marks_;
  }
}

MpiLink::~MpiLink() {
  if (!is_kept_ && !health_->broken() && !mpi_finalized()) {
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

std::string MpiLink::describe_unexpected(const Activity& expected, int peer,
                                         std::int64_t bytes) const {
  int found = 0;
  MPI_Status status;
  int count = 0;
  if (MPI_Iprobe(peer, MPI_ANY_TAG, communicator_, &found, &status) !=
          MPI_SUCCESS ||
      found == 0 || MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS) {
    return "";
  }
  const int call = status.MPI_TAG % tags_without_size;
  if (call == expected.tag) {
    return concat("; rank ", peer, " sent ", counted(count, "byte"),
                  ", expected ", bytes);
  }
  return concat("; rank ", peer, " sent ", counted(count, "byte"), " for ",
                kind_names[call / (marks * numbers)], ", its call ",
                call % numbers, " (modulo ", numbers, "), here it is ",
                kind_names[expected.tag / (marks * numbers)], ", call ",
                expected.tag % numbers);
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
  break_off(subject, dropped);
}

void MpiLink::break_off(const Subject& subject, std::string_view why) noexcept {
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
