// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/collect/admission.h"

namespace skein {

// T steps of E environments with A agents each; observations of O floats, actions of D reals or out of D choices.
struct SampleSizes {
  int64_t T = 2, E = 2, A = 1, O = 3, D = 2;
  bool discrete = false;
  int64_t S = 4;
  int64_t G = 0;  // Floats of the global state.
  int64_t P = 0;  // Episode metrics.
};
FragmentShape MakeSampleShape(const SampleSizes& sizes);

// Environment e of the batch ended in step t.
struct SampleEnd {
  int64_t t = 0, e = 0;
  bool truncated = false;
};

// A batch that admission accepts, of ticket 1, policy 1 and sequence 1. Element i of each real tensor is
// offset + i, except log_prob (offset - i) and reward (-offset - i); choices are i % D; `ends` is ordered by (t, e). Of
// several agents all take part.
v1::TrajectoryBatch MakeSampleBatch(const FragmentShape& shape, float offset = 0, const std::vector<SampleEnd>& ends = {});

// A batch as the learner receives it: written to bytes, cut into pieces and read from them. Not movable.
class ReceivedBatch {
 public:
  // Pieces of `piece_bytes` each; 0 = one piece.
  explicit ReceivedBatch(const v1::TrajectoryBatch& batch, size_t piece_bytes = 0);
  ReceivedBatch(const ReceivedBatch&) = delete;
  const WireBatch& wire() const { return request_.batch; }

 private:
  std::string bytes_;
  Pieces pieces_;
  WireRequest request_;
};

// A batch's tensors after admission, all in vectors. Fails the test if admission refuses it.
struct BatchValues : CheckedBatch {
  BatchValues(const v1::TrajectoryBatch& batch, const FragmentShape& shape);
  std::vector<float> obs, action, log_prob, reward, state;
  std::vector<int64_t> action_index;
};

// The tensor of that name. REQUIRES: there is one.
v1::Tensor* FindTensor(v1::TrajectoryBatch* batch, const std::string& name);

// Replaces element `index` of a tensor's data.
template <typename Value>
void SetElement(v1::Tensor* tensor, size_t index, Value value) {
  tensor->mutable_data()->replace(index * sizeof(Value), sizeof(Value), reinterpret_cast<const char*>(&value),
                                  sizeof(Value));
}

}  // namespace skein
