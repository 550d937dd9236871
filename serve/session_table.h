// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// State that a served policy keeps for one client between its requests.
struct Session {
  std::vector<float> state;  // [R, S]
  size_t rows = 0;           // R; 0 = it has just begun.
};

// The sessions of a server, by name. A session belongs to one request at a time. Thread-safe.
class SessionTable {
 public:
  // A session that was not used for `idle` makes room where there are `most` of them.
  SessionTable(size_t most, absl::Duration idle) : most_(most), idle_(idle) {}

  // The session of that name, a new one if there is none; the caller's until Return. InvalidArgument: the name is
  // longer than 200 bytes. Aborted: another request has it. ResourceExhausted: there are as many as there may be.
  absl::StatusOr<Session*> Take(const std::string& name, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  void Return(const std::string& name, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets it. Aborted: a request has it.
  absl::Status End(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);
  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    std::unique_ptr<Session> session = std::make_unique<Session>();
    absl::Duration last_used;
    bool taken = false;
  };
  // Forgets what has been idle for too long.
  void MakeRoom(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t most_;
  const absl::Duration idle_;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, Entry> sessions_ ABSL_GUARDED_BY(mu_);
  absl::Duration next_sweep_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
