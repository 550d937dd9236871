// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/direction_collect.h"

namespace skein {

void DirectionCollect::OpenIteration(uint64_t policy_version, const WorkSettings& settings) {
  settings_ = settings.directions;
  SynchronousCollect::OpenIteration(policy_version, settings);
}

void DirectionCollect::Complete(v1::Ticket* ticket) const {
  v1::DirectionsWork& work = *ticket->mutable_directions();
  work.set_noise_std(settings_.noise_std);
  work.set_episodes(config_.num_envs());
  work.set_episode_steps(settings_.EpisodeSteps(most_steps_));
}

}  // namespace skein
