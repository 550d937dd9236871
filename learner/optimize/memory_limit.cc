// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/memory_limit.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/telemetry/log.h"

namespace skein {

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const auto* const torch_error = dynamic_cast<const c10::Error*>(&error);
  if (torch_error == nullptr) return false;
  // The allocator of the CPU and CUDA's libraries tell it in words only.
  const std::string what = torch_error->what_without_backtrace();
  for (const char* words : {"out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED"}) {
    if (absl::StrContains(what, words)) return true;
  }
  return false;
}

absl::Status MemoryLimit::Go(int64_t rows, const Work& work, int64_t& piece) {
  if (absl::Status s = work.begin(); !s.ok()) return s;
  for (int64_t first = 0; first < rows; first += piece) {
    piece = samples_ > 0 ? std::min(std::max<int64_t>(1, samples_ / row_size_), rows - first) : rows;
    if (probe_) probe_(piece * row_size_);
    work.piece(first, piece, first + piece == rows);
  }
  return absl::OkStatus();
}

absl::Status MemoryLimit::RunOnce(int64_t rows, const Work& work) {
  int64_t piece = 0;
  return Go(rows, work, piece);
}

absl::Status MemoryLimit::Run(int64_t rows, const Work& work) {
  for (;;) {
    int64_t piece = 0;
    try {
      return Go(rows, work, piece);
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error)) throw;
      if (piece <= 1) {
        return absl::ResourceExhaustedError(
            row_size_ == 1 ? absl::StrCat("out of memory with a single ", words_.sample, "; ", words_.remedy)
                           : absl::StrCat("out of memory with a single sequence of ", row_size_, " ", words_.sample,
                                          "s; ", words_.remedy));
      }
    }
    samples_ = piece / 2 * row_size_;
    ++out_of_memory_;
    spdlog::warn("out of memory with {} {}s at once; from now on {} ({})", piece * row_size_, words_.sample, samples_,
                 words_.setting);
  }
}

}  // namespace skein
