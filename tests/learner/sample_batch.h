// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/admission.h"

namespace skein {

// T steps of E environments with A agents each; observations of O floats, actions of D reals or out of D choices.
struct SampleSizes {
  int64_t T = 2, E = 2, A = 1, O = 3, D = 2;
  bool discrete = false;
  int64_t S = 4;
};
BatchShape MakeSampleShape(const SampleSizes& sizes);

// Environment e of the batch ended in step t.
struct SampleEnd {
  int64_t t = 0, e = 0;
  bool truncated = false;
};

// A batch that admission accepts, of ticket 1, policy 1 and sequence 1. Element i of each real tensor is
// offset + i, except log_prob (offset - i) and reward (-offset - i); choices are i % D; `ends` is ordered by (t, e).
v1::TrajectoryBatch MakeSampleBatch(const BatchShape& shape, float offset = 0, const std::vector<SampleEnd>& ends = {});

// The tensor of that name. REQUIRES: there is one.
v1::Tensor* FindTensor(v1::TrajectoryBatch* batch, const std::string& name);

// Replaces element `index` of a tensor's data.
template <typename Value>
void SetElement(v1::Tensor* tensor, size_t index, Value value) {
  tensor->mutable_data()->replace(index * sizeof(Value), sizeof(Value), reinterpret_cast<const char*>(&value),
                                  sizeof(Value));
}

}  // namespace skein
