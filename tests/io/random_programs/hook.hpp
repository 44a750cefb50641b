// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// What a random program has around its reductions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <kzero/kzero.hpp>
#include <map>
#include <memory>

namespace kzero::test {

/// Passes buckets on, and looks at the order in which they come. The gradients
/// of every second one go out in another type, if they are float32.
class Hook {
 public:
  ReductionHook function() {
    return [this](BucketReduction& bucket) { return reduce(bucket); };
  }
  /// What was started is not gone on with.
  bool in_order() const { return in_order_; }

 private:
  ReductionTicket reduce(BucketReduction& bucket) {
    if (bucket.index() != next_ && bucket.index() != 0) in_order_ = false;
    next_ = bucket.is_last() ? 0 : bucket.index() + 1;
    if (bucket.dtype() != DType::float32 || bucket.index() % 2 != 0)
      return bucket.start();
    const auto values = bucket.gradients<float>();
    auto& room = rooms_[bucket.index()];
    room = bucket.communicator().allocate(std::max<std::int64_t>(
        bucket.size() * std::int64_t(sizeof(bfloat16)), 1));
    std::transform(values.begin(), values.end(),
                   static_cast<bfloat16*>(room.get()),
                   [](float value) { return bfloat16(value); });
    return bucket.start(room.get(), DType::bfloat16);
  }

  std::atomic<bool> in_order_ = true;
  std::int64_t next_ = 0;
  std::map<std::int64_t, std::shared_ptr<void>> rooms_;
};

}  // namespace kzero::test
