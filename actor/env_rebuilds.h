// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "actor/metrics.h"
#include "base/process/restart_budget.h"
#include "env/vector_env.h"

namespace skein {

// Replaces failed environments of one actor's runners: builds new ones after a pause, at most `most` times within ten
// minutes over all runners, and at most `most` times for one ticket.   Runner -> failure -> Rebuild -> a new VectorEnv
// Thread-safe.
class EnvRebuilds {
 public:
  static constexpr absl::Duration kWindow = absl::Minutes(10);
  // `make` builds the environments of one runner with the settings of a phase (Ticket.phase). `metrics` must outlive
  // this.
  using Make = std::function<absl::StatusOr<std::unique_ptr<VectorEnv>>(uint32_t phase)>;
  EnvRebuilds(uint32_t most, Make make, ActorMetrics* metrics)
      : most_(most), make_(std::move(make)), metrics_(metrics), budget_(most, kWindow) {}

  // Environments that replace none that failed. Errors as `make`.
  absl::StatusOr<std::unique_ptr<VectorEnv>> Build(uint32_t phase) const { return make_(phase); }

  // New environments that replace those that failed with `failure`, the `in_a_row`-th time for their ticket, after
  // `pause`. A failure to build them counts too.
  // `failure` itself, if that is not Internal: new ones would not help (VectorEnv::failure).
  // Internal: a limit was exceeded; the message has the last failure.
  // Cancelled: Cancel() was called.
  absl::StatusOr<std::unique_ptr<VectorEnv>> Rebuild(absl::Status failure, uint32_t in_a_row, absl::Duration pause,
                                                     uint32_t phase);

  // Ends all waits in Rebuild, present and future.
  void Cancel();

 private:
  const uint32_t most_;
  const Make make_;
  ActorMetrics* const metrics_;
  absl::Mutex mu_;
  RestartBudget budget_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
