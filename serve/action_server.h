// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "export/portable_actor.h"
#include "serve/batcher.h"
#include "serve/metrics.h"
#include "serve/session_table.h"

// Serves a policy's actions, independent of gRPC and HTTP.
namespace skein {

// A policy that is served, with what is said of it.
struct ServedPolicy {
  PortableActor actor;
  std::string checkpoint;
  std::string digest;
  uint64_t env_steps = 0;
};

// One request: R rows, each an agent.
struct Step {
  std::string session;              // Empty: nothing is kept, each row begins an episode.
  std::vector<float> observations;  // [R, O]
  std::vector<uint8_t> resets;      // [R], or empty: none.
  bool sample = false;
};

struct Acted {
  std::vector<float> actions;  // [R, D]; of choices [R], the choice.
  size_t rows = 0;
  std::shared_ptr<const ServedPolicy> policy;  // That chose them.
};

// Computes actions with the newest policy and keeps what sessions remember.   Step -> session -> Batcher -> Acted
// Thread-safe.
class ActionServer {
 public:
  struct Options {
    size_t most_sessions = 100000;
    absl::Duration session_idle = absl::Minutes(10);
    absl::Duration batch_wait;  // Zero: each request by itself, on its own thread.
    size_t batch_rows = 4096;
    uint64_t seed = 1;  // Of sampled actions.
  };
  static constexpr size_t kMostRows = 65536;

  // `metrics` must outlive this.
  ActionServer(const Options& options, std::shared_ptr<const ServedPolicy> policy, ServeMetrics* metrics);

  // Answers by calling `done` once, on this thread or the batcher's, which it must not hold up. InvalidArgument: sizes
  // that do not fit the policy or the session, or a number that is not finite. Others as SessionTable::Take.
  void Act(Step step, std::function<void(absl::StatusOr<Acted>)> done);
  // Of a request that never became a Step.
  void CountRefusal() { metrics_->Refused(); }
  // As SessionTable::End.
  absl::Status EndSession(const std::string& name);

  std::shared_ptr<const ServedPolicy> policy() const ABSL_LOCKS_EXCLUDED(mu_);
  // From now on acts with `policy`. FailedPrecondition: it takes or gives other sizes, or remembers others; nothing has
  // changed.
  absl::Status Replace(std::shared_ptr<const ServedPolicy> policy) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Check(const Step& step, const ServedPolicy& policy) const;
  void Compute(std::vector<BatchJob>* jobs);

  const Options options_;
  ServeMetrics* const metrics_;
  SessionTable sessions_;
  std::atomic<uint32_t> requests_{0};
  mutable absl::Mutex mu_;
  std::shared_ptr<const ServedPolicy> policy_ ABSL_GUARDED_BY(mu_);
  Batcher batcher_;  // Last: its thread ends first.
};

}  // namespace skein
