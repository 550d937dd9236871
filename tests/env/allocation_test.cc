// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "env/registry.h"
#include "env/vector_env.h"

namespace {
std::atomic<int64_t> allocations{0};
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Not inlined: GCC would see what is made by `new` freed by free().
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace skein {
namespace {

TEST(VectorEnv, AllocatesNothingAfterConstruction) {
  for (const EnvInfo& info : ListEnvs()) {
    const std::unique_ptr<VectorEnv> env =
        VectorEnv::Make({.env_id = info.id, .size = 4, .max_episode_steps = 10}).value();
    const size_t agents = 4 * info.spec.num_agents;
    std::vector<float> action(agents * info.spec.action_size), obs(agents * info.spec.obs_size);
    std::vector<float> global(4 * info.spec.global_state_size);
    std::vector<double> state(4 * env->state_size());
    const int64_t before = allocations;
    EXPECT_GT(before, 0);  // The counter counts.
    env->ResetAll(0);
    for (int t = 0; t < 50; ++t) {  // Five resets.
      env->Step(action.data());
      env->Observe(obs.data());
      env->GlobalState(global.data());
    }
    env->SaveState(state.data());
    if (info.spec.relocatable) {
      EXPECT_TRUE(env->LoadState(0, state.data()).ok());
    }
    EXPECT_EQ(allocations - before, 0) << info.id;
  }
}

}  // namespace
}  // namespace skein
