// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/registry.h"

#include <torch/types.h>

#include "absl/strings/str_cat.h"
#include "learner/algorithm/ars/ars.h"
#include "learner/algorithm/es/es.h"
#include "learner/algorithm/parted_algorithm.h"
#include "learner/algorithm/ppo/ppo.h"
#include "learner/algorithm/reinforce/reinforce.h"
#include "learner/network/actor_critic.h"

namespace skein {
namespace {

absl::Status PartsOnGpu(uint32_t parts, torch::Device device) {
  return absl::InvalidArgumentError(absl::StrCat("learner.gradient_parts: got ", parts, " with a learner on ",
                                                 device.str(), ", want 0; set learner.device to cpu"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Algorithm>> MakeAlgorithm(const v1::RunConfig& config, const EnvSpec& spec,
                                                         Collective* collective, torch::Device device) {
  if (config.learner().gradient_parts() > 0) {
    if (!device.is_cpu()) return PartsOnGpu(config.learner().gradient_parts(), device);
    v1::RunConfig of_part = config;
    of_part.mutable_learner()->set_gradient_parts(0);
    return PartedAlgorithm::Make(config.learner(), collective,
                                 [&](Collective* part) { return MakeAlgorithm(of_part, spec, part, device); });
  }
  const ActorCriticOptions network = MakeActorCriticOptions(config.model(), spec);
  if (config.has_ars()) return std::make_unique<Ars>(config, network);
  if (config.has_es()) return std::make_unique<Es>(config, network);
  if (config.has_reinforce()) return std::make_unique<Reinforce>(config, network, collective, device);
  if (config.has_ppo()) return std::make_unique<Ppo>(config, network, config.seed(), collective, device);
  return absl::InvalidArgumentError(absl::StrCat("MakeAlgorithm: the configuration has case ", config.algorithm_case(),
                                                 " of `algorithm`, for which learner/algorithm/registry.cc has no "
                                                 "line; give it a section of another algorithm, or add the line"));
}

}  // namespace skein
