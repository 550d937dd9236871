// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>
#include <type_traits>

#include "absl/status/statusor.h"

// Lack of memory in threads that read sequences.
namespace skein {

// What `read`, which returns a StatusOr, returns. ResourceExhausted where memory does not suffice for it: threads that
// read sequences end with it, where std::bad_alloc would end the process.
template <typename Read>
std::invoke_result_t<Read> WithinMemory(Read read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "not enough memory for the sequences that are read ahead; lower data.window, data.prefetch, "
        "train.batch_size or data.max_length");
  }
}

}  // namespace skein
