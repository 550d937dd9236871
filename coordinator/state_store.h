// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The interface of stores in which a coordinator keeps its state for a successor.
namespace skein {

// One change: a record is put or removed.
struct StateChange {
  std::string key;
  std::optional<std::string> value;  // nullopt: removed.
  // True: the change must survive a machine failure. False for data that members report again anyway.
  bool durable = true;
};

// Stores what a coordinator's successor must know, as records by key.   Write -> ... -> Load, in another process
// Not thread-safe, except Serving().
class StateStore {
 public:
  virtual ~StateStore() = default;

  // Returns all records. DataLoss: the stored data are damaged; call SetAside() to continue. Others as the store.
  virtual absl::StatusOr<std::map<std::string, std::string>> Load() = 0;

  // Makes the changes in order, after those of earlier calls. REQUIRES: each key occurs at most once.
  // Aborted: this coordinator may not, or no longer, write; this is final. Unavailable: no answer; try again later.
  // Others (disk full, ...): the changes were not made; the next call makes them too.
  virtual absl::Status Write(const std::vector<StateChange>& changes) = 0;

  // Moves all records, including damaged ones, to a place named `name` where Load() does not find them, replacing what
  // was there. Returns that place for display. Codes as Write().
  virtual absl::StatusOr<std::string> SetAside(const std::string& name) = 0;

  // Whether this coordinator may still serve. Thread-safe.
  virtual bool Serving() const { return true; }
};

}  // namespace skein
