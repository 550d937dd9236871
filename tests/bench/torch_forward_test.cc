// SPDX-License-Identifier: Apache-2.0
// The limit of acting computes what the policy computes, with and without a memory.
#include "bench/torch_forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/config/config.h"
#include "policy/snapshot.h"

namespace skein {
namespace {

TEST(TorchForward, ActsAsThePolicyOfItsSnapshot) {
  for (const v1::Memory memory : {v1::MEMORY_NONE, v1::MEMORY_GRU, v1::MEMORY_LSTM}) {
    SCOPED_TRACE(v1::Memory_Name(memory));
    v1::RunConfig config;
    ApplyDefaults(&config);
    config.mutable_model()->set_memory(memory);
    config.mutable_model()->set_memory_size(12);
    config.mutable_model()->set_policy_head_scale(1);
    EnvSpec spec;
    spec.obs_size = 3;
    spec.action_size = 2;
    const auto limit = TorchForward::Make(config, spec);
    ASSERT_TRUE(limit.ok()) << limit.status();
    const auto policy = ReadSnapshot((*limit)->Snapshot(), MakePolicySpec(config.model(), spec));
    ASSERT_TRUE(policy.ok()) << policy.status();
    // Another number of rows begins with zeros again.
    for (const int64_t rows : {4, 5}) {
      std::vector<float> obs(rows * 3), want(rows * 2), got(rows * 2);
      std::vector<float> state(rows * (*policy)->spec().state_size());
      for (int step = 0; step < 6; ++step) {
        for (size_t i = 0; i < obs.size(); ++i) obs[i] = std::sin(static_cast<float>(i + 5 * step));
        (*policy)->Act(obs.data(), state.data(), rows, want.data(), state.data());
        (*limit)->Act(obs.data(), rows, got.data());
        for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << rows << " " << step;
      }
    }
  }
}

}  // namespace
}  // namespace skein
