// SPDX-License-Identifier: Apache-2.0
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "env/registry.h"
#include "env/tensor/tensor_env.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr int kEnvs = 24;
constexpr uint64_t kSeed = (uint64_t{5} << 32) | 3, kFirstEnv = 9;

std::unique_ptr<VectorEnv> MakeNative(int limit, const EnvOptions& env = {}) {
  VectorEnv::Options options;
  options.env_id = "CartPole-v1";
  options.size = kEnvs;
  options.seed = kSeed;
  options.max_episode_steps = limit;
  options.env = env;
  return VectorEnv::Make(options).value();
}

std::unique_ptr<TensorEnv> MakeTensor(int limit, const EnvOptions& env = {}) {
  TensorEnv::Options options;
  options.worlds = kEnvs;
  options.seed = kSeed;
  options.first_env = kFirstEnv;
  options.max_episode_steps = limit;
  return MakeTensorEnv("CartPole-v1", options, env).value();
}

torch::Tensor NativeState(const VectorEnv& native) {
  torch::Tensor state = torch::empty({kEnvs, native.state_size()}, torch::kFloat64);
  native.SaveState(state.data_ptr<double>());
  return state;
}

void ExpectSameObs(const VectorEnv& native, const TensorEnv& tensor) {
  torch::Tensor got = torch::empty({kEnvs, 1, tensor.spec().obs_size}), want = torch::empty_like(got);
  tensor.Observe(got);
  native.Observe(want.data_ptr<float>());
  ASSERT_TRUE(torch::allclose(got, want, 1e-6, 1e-6)) << (got - want).abs().max();
}

// One step of both with the same random choices; returns how many episodes ended in each way.
struct Ends {
  int64_t terminated = 0, truncated = 0;
};
void StepBoth(RandomStream& random, VectorEnv& native, TensorEnv& tensor, Ends* ends) {
  torch::Tensor action = torch::empty({kEnvs, 1}, torch::kInt64);
  std::vector<float> as_float(kEnvs);
  for (int e = 0; e < kEnvs; ++e) {
    // Out of range, too: the nearest choice is taken.
    const int64_t choice = int64_t{random.Below(4)} - 1;
    action[e][0] = choice;
    as_float[e] = static_cast<float>(choice);
  }
  const TensorEnv::StepResult got = tensor.Step(action);
  const VectorEnv::StepResult want = native.Step(as_float.data());
  for (int e = 0; e < kEnvs; ++e) {
    ASSERT_EQ(got.terminated[e].item<bool>(), want.terminated[e] != 0);
    ASSERT_EQ(got.truncated[e].item<bool>(), want.truncated[e] != 0);
    EXPECT_EQ(got.agent_terminated[e][0].item<bool>(), want.agent_terminated[e] != 0);
    EXPECT_EQ(got.active[e][0].item<bool>(), want.active[e] != 0);
    EXPECT_EQ(got.reward[e][0].item<float>(), want.reward[e]);
    if (!got.ended[e].item<bool>()) continue;
    ends->terminated += want.terminated[e];
    ends->truncated += want.truncated[e];
    EXPECT_EQ(got.episode_return[e].item<double>(), want.episode_return[e]);
    EXPECT_EQ(got.episode_length[e].item<int64_t>(), want.episode_length[e]);
    const int size = tensor.spec().obs_size;
    for (int i = 0; i < size; ++i) {
      EXPECT_NEAR(got.final_obs[e][0][i].item<float>(), want.final_obs[e * size + i], 1e-6);
    }
  }
}

TEST(TensorCartPole, AgreesWithTheNativeFormInEveryStepOfRandomEpisodes) {
  const auto native = MakeNative(25);
  const auto tensor = MakeTensor(25);
  EXPECT_EQ(tensor->state_size(), native->state_size());
  native->ResetAll(kFirstEnv);
  tensor->ResetAll();
  EXPECT_TRUE(torch::equal(tensor->SaveState(), NativeState(*native)));  // The same words, the same doubles.
  RandomStream random(1, RandomPurpose::kAction, 0, 0);
  Ends ends;
  for (int t = 0; t < 200 && !HasFailure(); ++t) {
    StepBoth(random, *native, *tensor, &ends);
    ExpectSameObs(*native, *tensor);
  }
  EXPECT_TRUE(torch::allclose(tensor->SaveState(), NativeState(*native), 1e-9, 1e-9));
  EXPECT_GT(ends.terminated, 50);
  EXPECT_GT(ends.truncated, 10);
}

TEST(TensorCartPole, HidesTheSameColumns) {
  using Kind = TransformOptions::Kind;
  EnvOptions env;
  env.transforms = {{.setting = "env.hide", .kind = Kind::kHide, .columns = {"velocities"}},
                    {.setting = "env.transforms[0]", .kind = Kind::kHide, .columns = {"0"}}};
  const auto native = MakeNative(25, env);
  const auto tensor = MakeTensor(25, env);
  EXPECT_EQ(tensor->spec().obs_size, 1);  // The angle of the pole.
  native->ResetAll(kFirstEnv);
  tensor->ResetAll();
  RandomStream random(3, RandomPurpose::kAction, 0, 0);
  Ends ends;
  for (int t = 0; t < 60 && !HasFailure(); ++t) {
    StepBoth(random, *native, *tensor, &ends);
    ExpectSameObs(*native, *tensor);
  }
  EXPECT_GT(ends.terminated, 10);
  const torch::Tensor some = torch::tensor({5, 0}), all = torch::empty({kEnvs, 1, 1}), two = torch::empty({2, 1, 1});
  tensor->Observe(all);
  tensor->Observe(two, some);
  EXPECT_TRUE(torch::equal(two, all.index_select(0, some)));

  const auto error = [&env] { return std::string(MakeTensorEnv("CartPole-v1", {}, env).status().message()); };
  env.transforms[1].columns = {"2"};
  EXPECT_THAT(error(), HasSubstr("env.transforms[0]: '2' is not there"));
  env.transforms[1].kind = Kind::kClip;
  EXPECT_THAT(error(), HasSubstr("env.transforms[0]: not with environments on the device"));
}

TEST(TensorCartPole, ShowsTheCriticTheSameColumns) {
  using Kind = TransformOptions::Kind;
  EnvOptions env;
  env.transforms = {
      {.setting = "env.hide", .kind = Kind::kHide, .columns = {"velocities"}, .critic_sees_hidden = true},
      {.setting = "env.transforms[0]", .kind = Kind::kHide, .columns = {"0"}, .critic_sees_hidden = true}};
  const auto native = MakeNative(25, env);
  const auto tensor = MakeTensor(25, env);
  ASSERT_EQ(tensor->spec().global_state_size, 3);
  native->ResetAll(kFirstEnv);
  tensor->ResetAll();
  RandomStream random(3, RandomPurpose::kAction, 0, 0);
  Ends ends;
  torch::Tensor got = torch::empty({kEnvs, 3}), want = torch::empty({kEnvs, 3}), two = torch::empty({2, 3});
  for (int t = 0; t < 60 && !HasFailure(); ++t) {
    StepBoth(random, *native, *tensor, &ends);
    tensor->GlobalState(got);
    native->GlobalState(want.data_ptr<float>());
    ASSERT_TRUE(torch::allclose(got, want, 1e-6, 1e-6)) << (got - want).abs().max();
  }
  const torch::Tensor some = torch::tensor({5, 0});
  tensor->GlobalState(two, some);
  EXPECT_TRUE(torch::equal(two, got.index_select(0, some)));
}

TEST(TensorCartPole, GoesOnFromTheOthersState) {
  const auto native = MakeNative(0);
  const auto tensor = MakeTensor(0);
  native->ResetAll(kFirstEnv);
  RandomStream random(2, RandomPurpose::kAction, 0, 0);
  for (int t = 0; t < 30; ++t) native->Step(std::vector<float>(kEnvs, static_cast<float>(t % 2)).data());
  ASSERT_TRUE(tensor->LoadState(NativeState(*native)).ok());
  EXPECT_TRUE(torch::equal(tensor->SaveState(), NativeState(*native)));
  EXPECT_EQ(tensor->Steps()[3], native->step(3));
  Ends ends;
  for (int t = 0; t < 30; ++t) StepBoth(random, *native, *tensor, &ends);
  ASSERT_TRUE(native->LoadState(kFirstEnv, tensor->SaveState().data_ptr<double>()).ok());
  ExpectSameObs(*native, *tensor);
}

// Two sets of 12 environments, in a later episode; those that ended are stepped on and disturb nobody.
TEST(TensorCartPole, CopiesBeginAlikeInAnyEpisode) {
  TensorEnv::Options options;
  options.worlds = kEnvs;
  options.copies = 2;
  options.seed = kSeed;
  options.first_env = kFirstEnv;
  const auto both = MakeTensorEnv("CartPole-v1", options, {}).value();
  options.worlds = kEnvs / 2;
  options.copies = 1;
  const auto one = MakeTensorEnv("CartPole-v1", options, {}).value();
  both->BeginAll(7);
  one->BeginAll(7);
  const torch::Tensor want = one->SaveState();
  EXPECT_TRUE(torch::equal(both->SaveState(), torch::cat({want, want})));
  EXPECT_EQ(want[0][0].item<double>(), 7);
  one->BeginAll(8);
  EXPECT_FALSE(torch::equal(one->SaveState(), want));

  torch::Tensor going_on = torch::ones({kEnvs}, torch::kBool);
  for (int t = 0; t < 60; ++t) {
    const torch::Tensor ended = both->Advance(torch::ones({kEnvs, 1}, torch::kInt64)).ended;
    if (t < 7) {
      EXPECT_FALSE(ended.any().item<bool>());
    }
    going_on = going_on.logical_and(ended.logical_not());
  }
  EXPECT_FALSE(going_on.any().item<bool>());
  EXPECT_TRUE(both->SaveState().isfinite().all().item<bool>());
  options.copies = 5;
  EXPECT_THAT(std::string(MakeTensorEnv("CartPole-v1", options, {}).status().message()), HasSubstr("copies: got 5"));
}

TEST(TensorCartPole, ObservesSomeAsAll) {
  const auto tensor = MakeTensor(0);
  tensor->ResetAll();
  torch::Tensor all = torch::empty({kEnvs, 1, 4}), two = torch::empty({2, 1, 4});
  tensor->Observe(all);
  const torch::Tensor which = torch::tensor(std::vector<int64_t>{7, 2});
  tensor->Observe(two, which);
  EXPECT_TRUE(torch::equal(two, all.index_select(0, which)));
}

TEST(TensorCartPole, RefusesBadStatesAndKeepsItsOwn) {
  const auto tensor = MakeTensor(40);
  tensor->ResetAll();
  const torch::Tensor good = tensor->SaveState();
  torch::Tensor bad = good.clone();
  bad[2][1] = 40;
  EXPECT_THAT(std::string(tensor->LoadState(bad).message()), HasSubstr("step 40"));
  EXPECT_THAT(std::string(tensor->LoadState(good.narrow(0, 0, 3)).message()), HasSubstr("want float64 [24, 7]"));
  EXPECT_TRUE(torch::equal(tensor->SaveState(), good));
}

TEST(TensorEnvs, AreThoseThatTheRegistryMarks) {
  for (const EnvInfo& info : ListEnvs()) {
    const auto made = MakeTensorEnv(info.id, {}, {});
    EXPECT_EQ(made.ok(), info.tensor_form) << info.id;
    EXPECT_EQ(CheckTensorForm(info.id).ok(), info.tensor_form) << info.id;
    if (made.ok()) {
      EXPECT_EQ((*made)->spec().obs_size, info.spec.obs_size);
    } else {
      EXPECT_THAT(std::string(made.status().message()), HasSubstr(info.id + " has no such form; CartPole-v1, Uav"));
    }
  }
  EXPECT_THAT(std::string(MakeTensorEnv("CartPole-v7", {}, {}).status().message()), HasSubstr("did you mean"));
  TensorEnv::Options none;
  none.worlds = 0;
  EXPECT_THAT(std::string(MakeTensorEnv("CartPole-v1", none, {}).status().message()), HasSubstr("worlds: got 0"));
}

}  // namespace
}  // namespace skein
