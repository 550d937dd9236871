// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/direction_collect.h"

namespace skein {

void DirectionCollect::OpenIteration(uint64_t policy_version, const WorkSettings& settings) {
  noise_std_ = settings.noise_std;
  SynchronousCollect::OpenIteration(policy_version, settings);
}

void DirectionCollect::Complete(v1::Ticket* ticket) const {
  v1::DirectionsWork& work = *ticket->mutable_directions();
  work.set_noise_std(noise_std_);
  work.set_episodes(config_.num_envs());
  work.set_episode_steps(most_steps_);
}

}  // namespace skein
