// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "actor/direction_play.h"
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

// The work loop of one runner thread.   TakeTicket -> WaitFor policy -> T x (forward, sample, env step) -> PutFragment
// A ticket for directions: TakeTicket -> WaitFor policy -> DirectionPlay -> PutFragment
// If an environment fails, the fragment is abandoned and begun again from the start of its ticket with new
// environments; the learner sees no difference. Without a ticket the runner steps environments of runners that have
// one.
// Run() is called on a thread of its own and lowers that thread's priority (base/process/thread_priority.h); the
// constructor may run elsewhere.
class Runner {
 public:
  // All pointers must outlive the runner. `stop` makes Run return before its fragment is finished.
  static absl::StatusOr<std::unique_ptr<Runner>> Make(const v1::RunConfig& config, EnvRebuilds* rebuilds,
                                                      HeldEnvs* held_envs, Outbox* outbox, PolicyStore* policies,
                                                      StepSharing* sharing, ActorMetrics* metrics,
                                                      const std::atomic<bool>* stop);

  // Serves tickets until the outbox is stopped. Internal: environments failed too often; InvalidArgument: a ticket was
  // malformed.
  absl::Status Run();

  // The environment call that the runner is in.
  const EnvActivity& activity() const { return activity_; }

 private:
  Runner(const v1::RunConfig& config, EnvRebuilds* rebuilds, HeldEnvs* held_envs, Outbox* outbox, PolicyStore* policies,
         StepSharing* sharing, ActorMetrics* metrics, const std::atomic<bool>* stop);
  void Use(std::unique_ptr<VectorEnv> env, uint32_t phase);
  // Blocks for a ticket. Meanwhile it steps environments of runners that share theirs, and adds the time to `helped`.
  // Those runners count that time as their own. nullopt: the outbox was stopped.
  std::optional<HeldTicket> TakeTicketOrHelp(absl::Duration* helped);
  // Calls Serve again after each failure of an environment.
  absl::Status ServeUntilDone(const HeldTicket& held);
  // False: an environment failed, and no fragment was made.
  absl::StatusOr<bool> Serve(const HeldTicket& held);

  // Serve, for a ticket that asks for directions.
  absl::StatusOr<bool> ServeDirections(const HeldTicket& held);

  // Replaces environments of another phase than the ticket's.
  absl::Status UsePhase(uint32_t phase);
  // Puts the environments at the start of the ticket. Environments that are not relocatable are those that the group's
  // last ticket left here; if there are none, as after a failure, new episodes begin. Returns whether episodes
  // continue.
  absl::StatusOr<bool> PlaceEnvs(const HeldTicket& held);
  // Loads the policy state from the ticket: `size` floats, zeros if it has none. InvalidArgument: another size.
  absl::Status LoadPolicyState(const v1::Ticket& ticket, int64_t size);
  // Clears the policy state of all agents of each environment whose episode has ended; `width` floats each.
  void ForgetEndedEpisodes(const VectorEnv::StepResult& result, int64_t width);

  // The environments' observations [E, A, O] in the precision that is sent: the policy must see what the learner trains
  // on.
  void Observe(float* obs) const;

  const uint64_t seed_;
  const v1::TransportConfig transport_;
  const std::vector<std::string> algorithm_fields_;  // Of fragments.
  EnvRebuilds* const rebuilds_;
  HeldEnvs* const held_envs_;
  EnvActivity activity_;
  std::unique_ptr<VectorEnv> env_;  // Null between tickets of environments that cannot be moved: held_envs_ has them.
  uint32_t env_phase_ = 0;          // Whose settings env_ has (Ticket.phase).
  int group_envs_ = 0, env_state_size_ = 0;
  uint32_t restarted_episodes_ = 0;  // During the ticket in hand, as FragmentHeader has it.
  DirectionPlay directions_;
  std::vector<float> policy_state_;  // [E, A, S]; empty if the policy has no memory.
  absl::Duration idle_;              // Time waited for tickets since its last fragment.
  Outbox* const outbox_;
  PolicyStore* const policies_;
  StepSharing* const sharing_;
  ActorMetrics* const metrics_;
  const std::atomic<bool>* const stop_;
};

}  // namespace skein
