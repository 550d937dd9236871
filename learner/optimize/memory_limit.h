// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

#include "absl/status/status.h"

// Runs work on many rows in pieces that fit into memory.
namespace skein {

// Whether an exception of Torch or the standard library reports a lack of memory.
bool IsOutOfMemory(const std::exception& error);

// Divides work on many rows into pieces that fit into memory.
class MemoryLimit {
 public:
  // For messages: what a row is, the setting that limits a piece, and what to do if not even one row fits.
  struct Words {
    const char* row = "sample";
    const char* setting = "learner.micro_batch_size";
    const char* remedy = "the network is too large for the device";
  };
  // `rows`: the initial limit on the rows of one piece; 0 = no limit.
  explicit MemoryLimit(int64_t rows, const Words& words) : words_(words), rows_(rows) {}
  explicit MemoryLimit(int64_t rows) : MemoryLimit(rows, Words()) {}

  struct Work {
    std::function<absl::Status()> begin;                                // Called again at each retry.
    std::function<void(int64_t first, int64_t rows, bool last)> piece;  // Throws.
  };
  // Runs `work` on `rows` rows, piece by piece. If a piece runs out of memory, the limit becomes half of its rows
  // permanently, with a log line, and all pieces are repeated. With no rows only begin() is called.
  // ResourceExhausted: out of memory with one row. Other exceptions pass through.
  absl::Status Run(int64_t rows, const Work& work);
  // The same without retries: exceptions for lack of memory pass through too, and the limit stays.
  absl::Status RunOnce(int64_t rows, const Work& work);

  int64_t rows() const { return rows_; }
  int64_t out_of_memory() const { return out_of_memory_; }  // How often the limit was halved.
  // For tests. Called before each piece with its number of rows; may throw.
  void SetProbe(std::function<void(int64_t)> probe) { probe_ = std::move(probe); }

 private:
  // One attempt. `piece` is set to the rows of the current piece.
  absl::Status Go(int64_t rows, const Work& work, int64_t& piece);

  const Words words_;
  int64_t rows_;
  int64_t out_of_memory_ = 0;
  std::function<void(int64_t)> probe_;
};

}  // namespace skein
