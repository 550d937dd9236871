// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tests/learner/sample_fragment.h"

namespace skein::fuzz {

// Runs whose fragments are decoded: one agent; choices; a team with global state and metrics; bfloat16 observations;
// fields that are large enough to be compressed; a policy with a memory, and an algorithm that reads no field of its
// own.
inline const std::vector<FragmentShape>& Shapes() {
  static const auto* const shapes = [] {
    auto* all = new std::vector<FragmentShape>(6);
    SampleSizes sizes;
    (*all)[0] = MakeSampleShape(sizes);
    sizes.discrete = true;
    (*all)[1] = MakeSampleShape(sizes);
    sizes = {};
    sizes.A = 2;
    sizes.G = 3;
    sizes.P = 1;
    (*all)[2] = MakeSampleShape(sizes);
    (*all)[3] = MakeSampleShape({});
    (*all)[3].obs_dtype = v1::DATA_TYPE_BFLOAT16;
    sizes = {};
    sizes.T = 64;
    sizes.E = 1;
    sizes.O = 4;
    (*all)[4] = MakeSampleShape(sizes);
    (*all)[5] = MakeSampleShape({});
    (*all)[5].policy_state_size = 2;
    (*all)[5].algorithm_fields = {};
    for (FragmentShape& shape : *all) shape.max_episode_steps = 1000;
    return all;
  }();
  return *shapes;
}

}  // namespace skein::fuzz
