// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "env/vector_env.h"

namespace skein {

// The environments of groups that cannot be moved (EnvSpec.relocatable false), between two tickets of their group.
//   Runner -> Put -> Take -> the runner that has the group's next ticket
// What is kept belongs to one connection to a learner: `epoch` counts connections, and with the first Take of a newer
// one all that is older is destroyed. Thread-safe.
class HeldEnvs {
 public:
  // The environments of the group that begins with environment `first_env`, whose present episodes began with ticket
  // `episodes_since`; null: there are none.
  std::unique_ptr<VectorEnv> Take(uint64_t epoch, uint32_t first_env, uint64_t episodes_since);
  // Keeps them until they are taken, in place of older ones of their group. Destroys them if `epoch` is over or there
  // are newer ones: ticket ids rise.
  void Put(uint64_t epoch, uint32_t first_env, uint64_t episodes_since, std::unique_ptr<VectorEnv> envs);

 private:
  struct Group {
    uint64_t episodes_since = 0;
    std::unique_ptr<VectorEnv> envs;
  };

  absl::Mutex mu_;
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint32_t, Group> groups_ ABSL_GUARDED_BY(mu_);  // By first environment.
};

}  // namespace skein
