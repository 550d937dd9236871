// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace skein {

// The flags of `skein worker --sweep`.
struct SlotWorkerOptions {
  std::string folder;          // Of the sweep.
  std::string slots = "auto";  // Or a number; auto = as many as this machine has cores or room for.
  absl::Duration timeout;      // How long to wait for the sweep at first.
  std::string program_folder;
};

// Lends a sweep slots of this machine until it is over. Handles SIGINT and SIGTERM: trainings then write a checkpoint
// and go on elsewhere; call it before any other thread is started. InvalidArgument: the flags, or more than this
// machine has or other runs leave. Unavailable: no such sweep. FailedPrecondition: this machine sees other folders.
absl::Status RunSlotWorker(const SlotWorkerOptions& options);

}  // namespace skein
