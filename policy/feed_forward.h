// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/layer_stack.h"
#include "policy/policy.h"

namespace skein {

// A policy without memory: observation -> normaliser -> hidden layers -> head.
class FeedForward final : public Policy {
 public:
  // `layers`: weights and biases as LayerStack.
  FeedForward(uint64_t version, const PolicySpec& spec, absl::Span<const std::vector<float>> layers,
              std::vector<float> log_std, Normalization normalization);

  void Act(const float* obs, const float* state, int64_t rows, float* head, float* next_state) const override;
  std::shared_ptr<const Policy> Perturbed(const Direction& direction, double scale) const override;

 private:
  const std::vector<std::vector<float>> parameters_;  // Those of layers_, as PolicyParameters has them.
  const LayerStack layers_;
};

}  // namespace skein
