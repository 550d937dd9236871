// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

#include "absl/status/status.h"

namespace skein {

// Whether an exception of Torch or the standard library says that memory did not suffice.
bool IsOutOfMemory(const std::exception& error);

// Keeps work on many rows to pieces that memory suffices for.
class MemoryLimit {
 public:
  // Of rows at once, at first; 0 = no limit.
  explicit MemoryLimit(int64_t rows) : rows_(rows) {}

  struct Work {
    std::function<absl::Status()> begin;                                // Also when everything is done again.
    std::function<void(int64_t first, int64_t rows, bool last)> piece;  // Throws.
  };
  // `work` on `rows` rows, piece by piece. Where memory does not suffice for a piece: the limit becomes half of its
  // rows, for good, which is logged, and all of it is done again. No rows: begin() only. ResourceExhausted: not even
  // for one row. Other exceptions pass through.
  absl::Status Run(int64_t rows, const Work& work);
  // The same, but exceptions for lack of memory pass through too and change nothing.
  absl::Status RunOnce(int64_t rows, const Work& work);

  int64_t rows() const { return rows_; }
  int64_t out_of_memory() const { return out_of_memory_; }  // How often the limit was halved.
  // Called with the rows of each piece before it: a test throws here.
  void SetProbe(std::function<void(int64_t)> probe) { probe_ = std::move(probe); }

 private:
  // One go; `piece` is that of the piece at work.
  absl::Status Go(int64_t rows, const Work& work, int64_t& piece);

  int64_t rows_;
  int64_t out_of_memory_ = 0;
  std::function<void(int64_t)> probe_;
};

}  // namespace skein
