// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/process/cancellation.h"
#include "coordinator/coordinator_state.h"
#include "coordinator/state_store.h"

namespace skein {

// Where a coordinator keeps its state, as its flags say.
struct StoreOptions {
  std::string url;            // "" = RUN_DIRECTORY/coordinator if there is one; "none"; a folder; "etcd://..."
  std::string run_directory;  // May be empty.
  std::string address;        // Of this coordinator, for a standby to see.
  bool standby = false;       // Waits for as long as another coordinator is primary.
  absl::Duration lease = absl::Seconds(5);          // Of the primary.
  absl::Duration patience = absl::Seconds(2);       // For a folder: a coordinator that was killed may have it so long.
  Cancellation* cancel = nullptr;                   // Ends the wait; not owned, not used after it.
  std::function<void(const std::string&)> on_wait;  // As in EtcdStore::Options, and
  std::function<void(const absl::Status&)> on_lost;
};

// InvalidArgument: a bad url, or a standby without etcd.
absl::Status ValidateStore(const StoreOptions& options);

// Opens the store, in etcd once this coordinator is the primary; nullptr: nothing is kept. That the run directory is
// not writable is an error only if the store was asked for; that another coordinator has it, always. Codes as
// StateLog::Open and EtcdStore::Acquire.
absl::StatusOr<std::unique_ptr<StateStore>> OpenStore(const StoreOptions& options);

// Reads what a coordinator before this one kept, and completes `state` with it: run_id if that is empty, start_epoch,
// saved. Says in the log what was found, and what was not. What is damaged or of another run is set aside.
// `now`: milliseconds of the wall clock. Codes as the store.
absl::Status TakeOver(StateStore* store, uint64_t now, CoordinatorState::Options* state);

}  // namespace skein
