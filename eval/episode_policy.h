// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/env_options.h"

namespace skein {

// What acts in an evaluation: a checkpoint's policy, or a baseline. Not thread-safe.
class EpisodePolicy {
 public:
  virtual ~EpisodePolicy() = default;
  // Episodes first .. first + count - 1 begin, side by side.
  virtual void Begin(uint32_t first, uint32_t count) = 0;
  // obs: [count, A, O]; action: [count, A, D] or [count, A, 1], written.
  virtual void Act(const float* obs, float* action) = 0;
};

// "random": uniform choices, or reals between the bounds, of any environment; episode i depends on (seed, i) only.
// "greedy": FlyToTargets, of UavNavigate-v0.
// InvalidArgument: another name, or greedy for another environment.
absl::StatusOr<std::unique_ptr<EpisodePolicy>> MakeBaseline(const std::string& name, const EnvSpec& spec,
                                                            const EnvOptions& options, uint64_t seed);

}  // namespace skein
