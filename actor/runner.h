// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "actor/metrics.h"
#include "actor/outbox.h"
#include "actor/policy_store.h"
#include "env/vector_env.h"
#include "skein/v1/config.pb.h"

namespace skein {

// One runner thread's work.   TakeTicket -> WaitFor policy -> T x (forward, sample, env step) -> PutBatch
// Run() is called on a thread of its own; the constructor may run elsewhere.
class Runner {
 public:
  // The queue, store and metrics must outlive the runner. `stop` makes Run return before its fragment is finished.
  static absl::StatusOr<std::unique_ptr<Runner>> Make(const v1::RunConfig& config, Outbox* outbox,
                                                      PolicyStore* policies, ActorMetrics* metrics,
                                                      const std::atomic<bool>* stop);

  // Serves tickets until the outbox is stopped. Internal: Torch failed; InvalidArgument: a ticket was malformed.
  absl::Status Run();

 private:
  Runner(const v1::RunConfig& config, std::unique_ptr<VectorEnv> env, Outbox* outbox, PolicyStore* policies,
         ActorMetrics* metrics, const std::atomic<bool>* stop);
  absl::Status Serve(const HeldTicket& held);

  // The environments' observations [E, A, O] as they travel: the policy is to see what the learner trains on.
  void Observe(float* obs) const;

  const uint64_t seed_;
  const v1::TransportConfig transport_;
  std::unique_ptr<VectorEnv> env_;
  Outbox* const outbox_;
  PolicyStore* const policies_;
  ActorMetrics* const metrics_;
  const std::atomic<bool>* const stop_;
};

}  // namespace skein
