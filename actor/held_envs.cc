// SPDX-License-Identifier: Apache-2.0
#include "actor/held_envs.h"

#include <utility>

namespace skein {

std::unique_ptr<VectorEnv> HeldEnvs::Take(uint64_t stream, uint32_t first_env, uint64_t episodes_since) {
  std::map<uint32_t, Group> old;  // Before the lock, so that environments are destroyed without it.
  absl::MutexLock lock(&mu_);
  if (stream > stream_) {
    old.swap(groups_);
    stream_ = stream;
  }
  const auto it = groups_.find(first_env);
  if (stream < stream_ || it == groups_.end() || it->second.episodes_since != episodes_since) return nullptr;
  std::unique_ptr<VectorEnv> envs = std::move(it->second.envs);
  groups_.erase(it);
  return envs;
}

void HeldEnvs::Put(uint64_t stream, uint32_t first_env, uint64_t episodes_since, std::unique_ptr<VectorEnv> envs) {
  {
    absl::MutexLock lock(&mu_);
    if (stream >= stream_) {
      stream_ = stream;
      Group& group = groups_[first_env];
      // A runner that was slow with a ticket that is void by now brings environments of older episodes: ids rise.
      if (group.envs == nullptr || group.episodes_since <= episodes_since) {
        group.episodes_since = episodes_since;
        group.envs.swap(envs);
      }
    }
  }
  envs.reset();  // Older ones, or those of a connection that is over: without the lock.
}

}  // namespace skein
