// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Bucket size and algorithm by measurement, once, on the communicator that the
// steps will use.
#pragma once

#include <cstdint>
#include <kzero/communicator.hpp>
#include <kzero/dtype.hpp>
#include <kzero/plan.hpp>
#include <memory>
#include <string>
#include <vector>

namespace kzero::detail {

struct CommunicationChoice {
  std::int64_t bucket_bytes = 0;
  /// Whether what goes between nodes is added up before it is sent.
  bool adds_up = true;
  std::string words;  // for people
};

/// Reduces and gathers buckets of several sizes, as steps do.
class CommunicationTuning {
 public:
  /// Takes memory: of all gradients, at most of 64 MiB of them. Local.
  CommunicationTuning(Communicator& communicator, const Plan& plan);

  /// Collective: the same choice on every rank. Of choices that are about as
  /// fast, that which is nearest to what the plan has.
  CommunicationChoice run();

 private:
  struct Candidate {
    std::int64_t bucket_bytes = 0;
    bool adds_up = true;
    double seconds = 0;  // of the slowest rank
  };

  std::vector<Candidate> candidates() const;
  void measure(Candidate& candidate);
  void exchange(const Candidate& candidate);
  bool can_add_up() const;

  Communicator& communicator_;
  std::int64_t given_bytes_;
  DType dtype_ = DType::float32;
  std::int64_t bytes_ = 0;  // of gradients that are moved in a measurement
  std::shared_ptr<void> gradients_;
  std::vector<std::byte> averaged_;
};

}  // namespace kzero::detail
