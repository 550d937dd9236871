// SPDX-License-Identifier: Apache-2.0
#include "actor/faulty_env.h"

#include <cmath>
#include <stdexcept>

#include "base/process/fault_hook.h"
#include "gtest/gtest.h"
#include "tests/actor/counting_env.h"

namespace skein {
namespace {

class FaultyEnvTest : public testing::Test {
 protected:
  ~FaultyEnvTest() override {
    delete internal::fault_plan;
    internal::fault_plan = nullptr;
  }
  static std::unique_ptr<Env> Make(const std::string& faults) {
    internal::fault_plan = FaultPlan::Parse(faults).value().release();
    return MakeFaulty(std::make_unique<CountingEnv>(CountingEnvOptions()));
  }
  static bool Step(Env* env) {
    const float action[2] = {};
    float reward;
    return env->Step(action, &reward);
  }
};

TEST_F(FaultyEnvTest, WithoutFaultsItIsTheEnvironmentItself) {
  auto env = std::make_unique<CountingEnv>(CountingEnvOptions());
  const Env* const same = env.get();
  EXPECT_EQ(MakeFaulty(std::move(env)).get(), same);
}

TEST_F(FaultyEnvTest, ThrowsAtItsStep) {
  const auto env = Make("env:throw@at=2");
  EXPECT_FALSE(Step(env.get()));
  EXPECT_THROW(Step(env.get()), std::runtime_error);
  EXPECT_FALSE(Step(env.get()));
}

TEST_F(FaultyEnvTest, ObservesNanAtItsStepAlone) {
  const auto env = Make("env:nan@at=1");
  float obs[2];
  Step(env.get());
  env->Observe(obs);
  EXPECT_TRUE(std::isnan(obs[0]));
  Step(env.get());
  env->Observe(obs);
  EXPECT_EQ(obs[0], 2);  // It has counted on.
}

TEST_F(FaultyEnvTest, ObservesANumberTooMany) {
  const auto env = Make("env:shape@at=1");
  float obs[3] = {9, 9, 9};
  Step(env.get());
  env->Observe(obs);
  EXPECT_EQ(obs[0], 1);
  EXPECT_EQ(obs[2], 0);
}

TEST_F(FaultyEnvTest, Crashes) {
  const auto env = Make("env:crash@at=1");
  EXPECT_EXIT(Step(env.get()), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace skein
