// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "learner/network/actor_critic.h"
#include "learner/optimize/action_terms.h"
#include "learner/optimize/loss.h"
#include "skein/v1/config.pb.h"

namespace skein {

// PpoLoss (ppo_loss.h) as the Loss that GradientSteps minimises. FusedGradient is its accelerated form.
// Reads the samples' obs, action, log_prob (of the behaviour policy), advantage, old_value (if ppo.value_clip > 0),
// value_target and, for a central critic, critic_input. With a memory it reads sequences (Sequences::samples).
class PpoObjective : public Loss {
 public:
  static constexpr size_t kKl = 3;  // Index of "kl" in stats().

  // `network` must outlive this.
  PpoObjective(const v1::PpoConfig& config, const ActorCritic& network, torch::ScalarType precision);

  // Takes clip and entropy_coefficient from `config`.
  void SetSettings(const v1::PpoConfig& config);
  // Sets clip and entropy_coefficient from their schedules at `progress`.
  void SetSchedules(double progress);

  std::vector<std::string> stats() const override {
    return {"policy_loss", "value_loss", "entropy", "kl", "clip_fraction"};
  }
  std::vector<double> scheduled() const override;
  Terms Compute(const Minibatch& samples, const std::vector<torch::Tensor>& scheduled) const override;
  std::unique_ptr<AcceleratedLoss> Accelerated(int threads) const override;

 private:
  // Of sequences (Sequences::samples) whose steps' outputs are `now`. Their samples' sums, divided by the number of
  // sequences.
  Terms ComputeSequences(const Minibatch& samples, ActionTerms now) const;

  v1::PpoConfig config_;
  const ActorCritic& network_;
  const torch::ScalarType precision_;
  v1::PpoConfig now_;  // With this iteration's clip and entropy coefficient.
};

}  // namespace skein
