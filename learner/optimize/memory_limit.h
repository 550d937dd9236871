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
  // For messages: what a sample is, the setting that limits a piece, and what to do if not even one row fits.
  struct Words {
    const char* sample = "sample";
    const char* setting = "learner.micro_batch_size";
    const char* remedy = "the network is too large for the device";
  };
  // `samples`: the initial limit on the samples of one piece; 0 = no limit.
  explicit MemoryLimit(int64_t samples, const Words& words) : words_(words), samples_(samples) {}
  explicit MemoryLimit(int64_t samples) : MemoryLimit(samples, Words()) {}
  // The samples of a row from now on; 1 at first. A piece has at least one row.
  void SetRowSize(int64_t samples) { row_size_ = samples; }

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

  int64_t samples() const { return samples_; }
  int64_t out_of_memory() const { return out_of_memory_; }  // How often the limit was halved.
  // For tests. Called before each piece with its number of samples; may throw.
  void SetProbe(std::function<void(int64_t)> probe) { probe_ = std::move(probe); }

 private:
  // One attempt. `piece` is set to the rows of the current piece.
  absl::Status Go(int64_t rows, const Work& work, int64_t& piece);

  const Words words_;
  int64_t samples_;
  int64_t row_size_ = 1;
  int64_t out_of_memory_ = 0;
  std::function<void(int64_t)> probe_;
};

}  // namespace skein
