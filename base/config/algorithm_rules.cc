// SPDX-License-Identifier: Apache-2.0
#include "base/config/algorithm_rules.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

absl::Status CheckMinibatch(const v1::RunConfig& config) {
  const uint32_t steps = config.rollout().steps_per_iteration();
  if (MinibatchSize(config) <= steps) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(AlgorithmName(config), ".minibatch_size (", MinibatchSize(config),
                                                 ") must not exceed rollout.steps_per_iteration (", steps, ")"));
}

absl::Status CheckReinforce(const v1::RunConfig& config) {
  const v1::SyncMode mode = config.sync().mode();
  if (mode != v1::SYNC_MODE_ON_POLICY && mode != v1::SYNC_MODE_ON_DEVICE) {
    return absl::InvalidArgumentError(
        "sync.mode must be on_policy or on_device with reinforce, which does not correct for data of an older policy");
  }
  return CheckMinibatch(config);
}

}  // namespace

absl::Status CheckAlgorithm(const v1::RunConfig& config) {
  return config.has_reinforce() ? CheckReinforce(config) : CheckMinibatch(config);
}

std::string AlgorithmName(const v1::RunConfig& config) {
  const auto* const choice = v1::RunConfig::descriptor()->FindOneofByName("algorithm");
  return config.GetReflection()->GetOneofFieldDescriptor(config, choice)->name();
}

uint32_t MinibatchSize(const v1::RunConfig& config) {
  if (!config.has_reinforce()) return config.ppo().minibatch_size();
  const uint32_t size = config.reinforce().minibatch_size();
  return size > 0 ? size : config.rollout().steps_per_iteration();
}

}  // namespace skein
