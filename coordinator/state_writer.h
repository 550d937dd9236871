// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "coordinator/state_store.h"

namespace skein {

// Writes a coordinator's changes to its store on a thread of its own, so that no call waits for a disk.
//   Add -> queue -> StateStore::Write with the newest change of each key -> `done` of each Add
// Changes that cannot be written are retried with the next ones, or after `try_again`. `done` waits for the retry only
// if the store does not answer at all (Unavailable). Thread-safe.
class StateWriter {
 public:
  // `store` must outlive this object. `on_result` is called with each result of a write, on the writer's thread.
  StateWriter(StateStore* store, std::function<void(const absl::Status&)> on_result,
              absl::Duration try_again = absl::Seconds(1));
  ~StateWriter() { Stop(); }

  // The result of writing the changes of this and earlier calls. Aborted: never written, because this coordinator may
  // no longer write. Unavailable: the writer was stopped first. Others: as StateStore::Write(); the changes will be
  // retried.
  using Done = std::function<void(const absl::Status& written)>;
  // `done` is called once: on the writer's thread, or immediately on this one if the writer has stopped.
  void Add(std::vector<StateChange> changes, Done done) ABSL_LOCKS_EXCLUDED(mu_);

  // Tries once to write the remaining changes, then calls the remaining `done`s. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stop_ || !added_.empty() || !dones_.empty(); }

  StateStore* const store_;
  const std::function<void(const absl::Status&)> on_result_;
  const absl::Duration try_again_;

  absl::Mutex mu_;
  std::vector<StateChange> added_ ABSL_GUARDED_BY(mu_);
  std::vector<Done> dones_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace skein
