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

// Options of a coordinator's state store, from its flags.
struct StoreOptions {
  std::string url;            // "" = RUN_DIRECTORY/coordinator if there is one; "none"; a folder; "etcd://..."
  std::string run_directory;  // May be empty.
  std::string address;        // Of this coordinator, for a standby to see.
  bool standby = false;       // Wait while another coordinator is primary.
  absl::Duration lease = absl::Seconds(5);          // Of the primary.
  absl::Duration patience = absl::Seconds(2);       // For a folder: how long a killed coordinator may hold it.
  Cancellation* cancel = nullptr;                   // Ends the wait; not owned, not used after it.
  std::function<void(const std::string&)> on_wait;  // As in EtcdStore::Options, and
  std::function<void(const absl::Status&)> on_lost;
};

// InvalidArgument: a bad url, or a standby without etcd.
absl::Status ValidateStore(const StoreOptions& options);

// Opens the store; in etcd, waits until this coordinator is the primary. nullptr: no state is to be kept. Codes as
// StateLog::Open and EtcdStore::Acquire; PermissionDenied: the folder in the run directory is a symbolic link, or
// cannot be made.
absl::StatusOr<std::unique_ptr<StateStore>> OpenStore(const StoreOptions& options);

// Reads the state that an earlier coordinator kept and fills in `state`: run_id if empty, start_epoch, saved. Logs what
// was found. Records that are damaged or of another run are set aside. `now`: milliseconds of the wall clock. Codes as
// the store.
absl::Status TakeOver(StateStore* store, uint64_t now, CoordinatorState::Options* state);

}  // namespace skein
