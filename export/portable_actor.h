// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "export/portable_policy.h"
#include "policy/policy.h"

namespace skein {

// Acts as the files of portable_policy.h do, with the policy that `skein eval` has. Immutable; thread-safe.
class PortableActor {
 public:
  PortableActor(PortablePolicy portable, std::shared_ptr<const Policy> policy);

  const PortablePolicy& portable() const { return portable_; }
  int64_t observation_size() const { return portable_.env.obs_size; }
  int64_t state_size() const { return state_size_; }
  int64_t head_size() const { return portable_.network.head_size(); }
  // Floats of an action: D, or 1 with choices.
  int64_t action_size() const { return portable_.spec.discrete ? 1 : portable_.spec.action_size; }

  // observation [rows, O] -> head [rows, H]; state [rows, S] is read and written. reset [rows]: where it is 1, an
  // episode begins and the state is not read.
  void Head(const float* observation, const uint8_t* reset, int64_t rows, float* state, float* head) const;
  // head [rows, H] -> action [rows, D], as the environment gets it; of choices [rows, 1], the choice. `noise`: null =
  // the deterministic action; standard normal [rows, D]; of choices uniform [rows].
  void Action(const float* head, const float* noise, int64_t rows, float* action) const;

 private:
  void ActOne(const float* head, const float* noise, float* action) const;

  const PortablePolicy portable_;
  const std::shared_ptr<const Policy> policy_;
  const int64_t state_size_;
  const std::vector<float> std_;
};

}  // namespace skein
