// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace skein {

class Policy;

// Holds the policies of an actor, newest last.   PolicyCall -> Put -> WaitFor -> runner
// Keeps as many versions as open tickets can ask for. `stream` is the number of a Collect stream; policies of an older
// stream are dropped. Thread-safe.
class PolicyStore {
 public:
  // Begins a stream: drops all policies and wakes threads that wait for an older stream.
  void BeginStream(uint64_t stream);
  // Ignored unless `stream` is the current one and the version is newer than all before.
  void Put(uint64_t stream, std::shared_ptr<const Policy> policy);
  // Blocks until policy `version` (0 = any: then the newest) of `stream` has arrived.
  // Cancelled: the stream has passed or Stop() was called. NotFound: the version was dropped, newer ones are held.
  absl::StatusOr<std::shared_ptr<const Policy>> WaitFor(uint64_t stream, uint64_t version);
  uint64_t newest_version() const;
  void Stop();

 private:
  mutable absl::Mutex mu_;
  uint64_t stream_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<std::shared_ptr<const Policy>> policies_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
