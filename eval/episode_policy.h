// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/env_options.h"

namespace skein {

// Chooses the actions in an evaluation: a checkpoint's policy or a baseline. Not thread-safe.
class EpisodePolicy {
 public:
  virtual ~EpisodePolicy() = default;
  // Begins episodes first .. first + count - 1, which run side by side.
  virtual void Begin(uint32_t first, uint32_t count) = 0;
  // Writes actions. obs: [count, A, O]; action: [count, A, D], or [count, A, 1] if discrete.
  virtual void Act(const float* obs, float* action) = 0;
};

// Makes a baseline. "random": uniform choices, or uniform reals within the bounds, for any environment; episode i
// depends only on (seed, i). "greedy": MakeGreedyPolicy. InvalidArgument: another name, or greedy for an environment
// that has no such policy or has transforms.
absl::StatusOr<std::unique_ptr<EpisodePolicy>> MakeBaseline(const std::string& name, const EnvSpec& spec,
                                                            const EnvOptions& options, uint64_t seed);

}  // namespace skein
