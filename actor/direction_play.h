// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actor/fragment_builder.h"
#include "base/number/exact_moments.h"
#include "env/vector_env.h"
#include "policy/policy.h"
#include "skein/v1/trajectory.pb.h"
#include "trajectory/frame.h"

namespace skein {

// Plays the episodes of a ticket for directions (DirectionsWork).
//   Ticket, base policy -> for each direction and sign: perturb -> episodes -> sums -> Fragment
// Episode e of direction d is that of environment d * episodes + e and of number `iteration`, for both signs, so that
// plus and minus begin in the same states. The result depends on the ticket, the policy and the seed only. Allocates
// once for each direction and nothing for a step. Not thread-safe: one per runner.
class DirectionPlay {
 public:
  // `env`: one environment, for all calls of Play with it. `counts_observations`: as FragmentShape.
  DirectionPlay(uint64_t seed, bool counts_observations) : seed_(seed), counts_observations_(counts_observations) {}

  // The fragment's stage_seconds have `inference`, reckoned from some of the steps; the rest of the call's time is the
  // environment's, observing and adding up included.
  // nullopt: `stop` was set, or the environment failed (env->failure()). InvalidArgument: the ticket is malformed, or
  // the policy cannot be perturbed. REQUIRES: `env` has one environment of one agent.
  absl::StatusOr<std::optional<Fragment>> Play(const v1::Ticket& ticket, const Policy& policy, VectorEnv* env,
                                               const std::atomic<bool>& stop);

 private:
  // The sums of one sign's episodes.
  struct Sums {
    double episode_return = 0;
    int64_t steps = 0;
  };
  // The policy's wall time in the steps that are timed.
  struct Timed {
    absl::Duration inference;
    int64_t steps = 0;
  };
  // False: as nullopt above.
  bool PlayEpisode(const Policy& policy, uint64_t env_index, uint64_t iteration, uint32_t most_steps, VectorEnv* env,
                   const std::atomic<bool>& stop, Sums* sums);
  Fragment Pack(const v1::Ticket& ticket, const EnvSpec& spec);

  const uint64_t seed_;
  const bool counts_observations_;
  std::vector<float> obs_, head_;
  std::vector<Sums> plus_, minus_;  // [directions]
  // Of the ticket's directions with finite returns, and of the direction that is being played.
  std::optional<ExactMoments> moments_, direction_moments_;
  uint64_t steps_ = 0;  // Ever played.
  Timed timed_;         // Of this ticket.
  FragmentBuilder fragment_;
};

}  // namespace skein
