// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "policy/direction.h"
#include "policy/normalization.h"
#include "policy/policy_spec.h"

namespace skein {

// A published policy, ready to act: a function of observations and of the policy state.
//   PolicySnapshot -> Policy;   (observation, state) -> Act -> (parameters of the action's distribution, next state)
// Immutable: any number of threads may share it by shared_ptr<const Policy>.
class Policy {
 public:
  virtual ~Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  // Raw observations [rows, O] and states [rows, S] -> head [rows, head_size()] (means or logits) and next states
  // [rows, S], all float32 without gaps. A row is one agent of one environment; on one kind of processor its result
  // does not depend on the other rows, to the bit. `next_state` may be `state`; both may be null if S = 0. An episode
  // begins with a state of zeros, which the caller writes. Allocates nothing after a first call with as many rows on
  // the same thread.
  virtual void Act(const float* obs, const float* state, int64_t rows, float* head, float* next_state) const = 0;

  // This policy with its searched parameters moved by `scale` times the direction. Null: policies of this kind cannot
  // be perturbed.
  virtual std::shared_ptr<const Policy> Perturbed(const Direction& direction, double scale) const {
    (void)direction, (void)scale;
    return nullptr;
  }

  uint64_t version() const { return version_; }
  const PolicySpec& spec() const { return spec_; }
  // The logarithm of the standard deviation of each action dimension, [D]; empty if discrete.
  const std::vector<float>& log_std() const { return log_std_; }

 protected:
  Policy(uint64_t version, PolicySpec spec, std::vector<float> log_std, Normalization normalization)
      : version_(version),
        spec_(std::move(spec)),
        log_std_(std::move(log_std)),
        normalization_(std::move(normalization)) {}
  const Normalization& normalization() const { return normalization_; }

 private:
  const uint64_t version_;
  const PolicySpec spec_;
  const std::vector<float> log_std_;
  const Normalization normalization_;
};

// Makes the policy of this spec: FeedForward, or Recurrent if it has a memory. `values` are those of
// PolicyParameters(spec), in their order and row-major. REQUIRES: their sizes are right; memory in `spec` has a size.
std::shared_ptr<const Policy> MakePolicy(uint64_t version, const PolicySpec& spec,
                                         absl::Span<const std::vector<float>> values, Normalization normalization);

}  // namespace skein
