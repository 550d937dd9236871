// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace skein {

// One record put or removed.
struct StateChange {
  std::string key;
  std::optional<std::string> value;  // nullopt: removed.
  // Should outlive a failure of the machine. What does not is what members repeat anyway.
  bool durable = true;
};

// Where a coordinator keeps what its successor must know: records by key.   Write -> ... -> Load, in another process
// Not thread-safe, but for Serving().
class StateStore {
 public:
  virtual ~StateStore() = default;

  // All records as they are. DataLoss: what is kept is damaged; SetAside() is the way on. Others as the store has them.
  virtual absl::StatusOr<std::map<std::string, std::string>> Load() = 0;

  // Makes the changes, in their order, after those of earlier calls; a key is among them once at most. Aborted: this
  // coordinator is not (any more) the one that may write, now and for ever. Unavailable: no answer, later again.
  // Others (disk full, ...): they were not made; the next call makes them too.
  virtual absl::Status Write(const std::vector<StateChange>& changes) = 0;

  // Moves all records, damaged ones too, to where Load() does not find them, under `name`: where that is, for people.
  // What was there before is gone. Codes as Write().
  virtual absl::StatusOr<std::string> SetAside(const std::string& name) = 0;

  // Whether this coordinator is still the one that may serve. Thread-safe.
  virtual bool Serving() const { return true; }
};

}  // namespace skein
