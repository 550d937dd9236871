// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "actor/env_rebuilds.h"
#include "actor/held_envs.h"
#include "actor/metrics.h"
#include "actor/outbox.h"
#include "actor/policy_store.h"
#include "actor/step_sharing.h"
#include "base/net/backoff.h"
#include "env/env_activity.h"
#include "env/vector_env.h"
#include "skein/v1/config.pb.h"

namespace skein {

// One runner thread's work.   TakeTicket -> WaitFor policy -> T x (forward, sample, env step) -> PutBatch
// When an environment fails, the fragment is abandoned, and begun again with new environments, from where its ticket
// begins: whoever trains on it cannot tell. Without a ticket it steps environments of runners that have one.
// Run() is called on a thread of its own, whose priority is lowered (base/process/thread_priority.h); the constructor
// may run elsewhere.
class Runner {
 public:
  // All that is pointed to must outlive the runner. `stop` makes Run return before its fragment is finished.
  static absl::StatusOr<std::unique_ptr<Runner>> Make(const v1::RunConfig& config, EnvRebuilds* rebuilds,
                                                      HeldEnvs* held_envs, Outbox* outbox, PolicyStore* policies,
                                                      StepSharing* sharing, ActorMetrics* metrics,
                                                      const std::atomic<bool>* stop);

  // Serves tickets until the outbox is stopped. Internal: environments failed too often; InvalidArgument: a
  // ticket was malformed.
  absl::Status Run();

  // Where its environments are.
  const EnvActivity& activity() const { return activity_; }

 private:
  Runner(const v1::RunConfig& config, EnvRebuilds* rebuilds, HeldEnvs* held_envs, Outbox* outbox, PolicyStore* policies,
         StepSharing* sharing, ActorMetrics* metrics, const std::atomic<bool>* stop);
  void Use(std::unique_ptr<VectorEnv> env);
  // Blocks for a ticket, and steps environments of runners that let it meanwhile: `helped` counts up for how long.
  // Those runners book that time as theirs. nullopt: the outbox was stopped.
  std::optional<HeldTicket> TakeTicketOrHelp(absl::Duration* helped);
  // As often as environments fail.
  absl::Status ServeUntilDone(const HeldTicket& held);
  // False: an environment failed, and nothing has come of it.
  absl::StatusOr<bool> Serve(const HeldTicket& held);

  // The environments, where the ticket begins. Those that cannot be moved are the ones that the group's last ticket
  // left here; where there are none, as after a failure, their episodes begin anew. Whether episodes go on.
  absl::StatusOr<bool> PlaceEnvs(const HeldTicket& held);
  // What the policy remembers, from the ticket: `size` floats, zeros if it has none. InvalidArgument: of another size.
  absl::Status LoadPolicyState(const v1::Ticket& ticket, int64_t size);
  // Zeros for all agents of each environment whose episode has ended; `width` floats each.
  void ForgetEndedEpisodes(const VectorEnv::StepResult& result, int64_t width);

  // The environments' observations [E, A, O] as they travel: the policy is to see what the learner trains on.
  void Observe(float* obs) const;

  const uint64_t seed_;
  const v1::TransportConfig transport_;
  EnvRebuilds* const rebuilds_;
  HeldEnvs* const held_envs_;
  EnvActivity activity_;
  std::unique_ptr<VectorEnv> env_;  // Null between tickets of environments that cannot be moved: held_envs_ has them.
  int num_envs_ = 0, env_state_size_ = 0;
  std::vector<float> policy_state_;  // [E, A, S]; empty if the policy has no memory.
  absl::Duration idle_;              // What it waited for tickets since its last fragment.
  Outbox* const outbox_;
  PolicyStore* const policies_;
  StepSharing* const sharing_;
  ActorMetrics* const metrics_;
  const std::atomic<bool>* const stop_;
};

}  // namespace skein
