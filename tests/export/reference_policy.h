// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "export/portable_actor.h"

namespace skein {

// A policy with what it does in Skein's own parts: the environment's transforms, VectorEnv and Policy.
struct ReferencePolicy {
  std::string name;
  std::string checkpoint;  // The run's folder.
  std::shared_ptr<const PortableActor> actor;
  // N steps of one agent, one after the other, with episodes that end now and then.
  std::vector<float> observations;  // [N, O]
  std::vector<uint8_t> resets;      // [N]
  std::vector<float> heads;         // [N, H]
  std::vector<float> actions;       // [N, D] or [N, 1], as the environment got them.
  std::vector<float> noise;         // [N, D] or [N, 1]
  std::vector<float> samples;       // [N, D] or [N, 1], of PortableActor.
};

inline constexpr int kReferenceSteps = 10000;

// Names of all policies: feed-forward ones with each activation, with memories, of real actions and of choices, linear,
// with transforms and without.
std::vector<std::string> ReferenceNames();
// Writes the checkpoint of that policy, with random parameters, to folder/NAME, and plays it.
ReferencePolicy MakeReference(const std::string& name, const std::string& folder);

}  // namespace skein
