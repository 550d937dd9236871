// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "env/vector_env.h"

namespace skein {

// Keeps environments that are not relocatable (EnvSpec.relocatable) between two tickets of their env group.
//   Runner -> Put -> Take -> the runner that has the group's next ticket
// `stream` is the number of a Collect stream to a learner. The first Take of a newer stream destroys everything older.
// Thread-safe.
class HeldEnvs {
 public:
  // The environments of the group that begins with environment `first_env`, whose current episodes began with ticket
  // `episodes_since`; null: there are none.
  std::unique_ptr<VectorEnv> Take(uint64_t stream, uint32_t first_env, uint64_t episodes_since);
  // Keeps environments until they are taken, in place of older ones of their group. Destroys them if `stream` is over
  // or newer ones are kept: ticket ids rise.
  void Put(uint64_t stream, uint32_t first_env, uint64_t episodes_since, std::unique_ptr<VectorEnv> envs);

 private:
  struct Group {
    uint64_t episodes_since = 0;
    std::unique_ptr<VectorEnv> envs;
  };

  absl::Mutex mu_;
  uint64_t stream_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint32_t, Group> groups_ ABSL_GUARDED_BY(mu_);  // By first environment.
};

}  // namespace skein
