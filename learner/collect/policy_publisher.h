// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "learner/collect/connection_id.h"
#include "learner/report/metrics.h"
#include "skein/v1/learner_service.pb.h"

namespace skein {

// Sends each new policy to every subscriber.   Trainer -> Publish -> SubscribePolicy streams
// Keeps the two newest versions: open tickets never ask for an older one. A slow subscriber gets the newest two once it
// is ready again. Thread-safe.
class PolicyPublisher {
 public:
  explicit PolicyPublisher(LearnerMetrics* metrics) : metrics_(metrics) {}

  // REQUIRES: versions rise.
  void Publish(std::shared_ptr<const v1::PolicySnapshot> snapshot);
  // A stream to `actor`, which already has `newest_version`. The stream owns itself.
  grpc::ServerWriteReactor<v1::PolicySnapshot>* Subscribe(const ConnectionId& actor, uint64_t newest_version);
  // Ends all streams to `actor` with ABORTED.
  void Dismiss(const ConnectionId& actor);
  // Ends all streams with OK; later subscribers end at once. Idempotent.
  void Finish();

 private:
  class Stream;
  // Sends the next version that `stream` lacks, if it is idle; ends it after Finish() or Dismiss().
  void Advance(Stream* stream);

  LearnerMetrics* const metrics_;
  absl::Mutex mu_;
  std::deque<std::shared_ptr<const v1::PolicySnapshot>> kept_ ABSL_GUARDED_BY(mu_);  // At most two, oldest first.
  std::set<Stream*> streams_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
