// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/offscreen_renderer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "env/mujoco/offscreen_context.h"
#include "env/mujoco/task.h"
#include "env/registry.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

constexpr int kWidth = 160, kHeight = 120;

std::vector<double> StateAt(double x) {
  const auto env = MakeEnv("HalfCheetah-v5").value();
  RandomStream random(1, RandomPurpose::kEvaluation, 0, 0);
  env->Reset(random);
  std::vector<double> state(env->spec().state_size);
  env->SaveState(state.data());
  state[1] = x;
  return state;
}

// The cheetah is the one thing in the picture with much more red than blue.
int OrangePixels(const std::vector<uint8_t>& rgb, int first_row, int last_row) {
  int count = 0;
  for (size_t i = size_t(first_row) * kWidth * 3; i < size_t(last_row) * kWidth * 3; i += 3)
    count += rgb[i] > rgb[i + 2] + 60;
  return count;
}

TEST(OffscreenRenderer, FollowsTheCheetahOrSaysWhatIsMissing) {
  auto renderer = OffscreenRenderer::Make("HalfCheetah-v5", kWidth, kHeight);
  if (!renderer.ok()) {
    EXPECT_TRUE(absl::IsUnavailable(renderer.status())) << renderer.status();
    EXPECT_THAT(renderer.status().message(), testing::AllOf(testing::HasSubstr("libegl1"), testing::HasSubstr("EGL: "),
                                                            testing::HasSubstr("OSMesa: ")));
    GTEST_SKIP() << renderer.status();
  }
  EXPECT_EQ((*renderer)->frames_per_second(), 20);
  std::vector<uint8_t> here(kWidth * kHeight * 3), there(here.size());
  (*renderer)->Render(StateAt(0.25).data(), here.data());
  // A metre and a half is some 40 pixels of 160: upright, it is in the middle rows of the picture.
  EXPECT_GT(OrangePixels(here, kHeight / 4, kHeight * 3 / 4), 300);
  EXPECT_LT(OrangePixels(here, 0, kHeight / 8), 1);
  // A hundred metres on nothing but the overlay has changed; half a metre on the lines have, too.
  (*renderer)->Render(StateAt(100.25).data(), there.data());
  EXPECT_NEAR(OrangePixels(there, 0, kHeight), OrangePixels(here, 0, kHeight), 10);
  const auto middle = [](const std::vector<uint8_t>& rgb) {
    return std::vector<uint8_t>(rgb.begin() + kWidth * 3 * kHeight / 4, rgb.begin() + kWidth * 3 * kHeight * 3 / 4);
  };
  (*renderer)->Render(StateAt(0.75).data(), there.data());
  EXPECT_NE(middle(here), middle(there));
}

// The columns and rows, 0 to 1, between which bodies are: all are of orange and brown.
struct Frame {
  double left = 1, right = 0, top = 1, bottom = 0, share = 0;
};
Frame FrameOfBody(const std::vector<uint8_t>& rgb) {
  Frame frame;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const uint8_t* const pixel = rgb.data() + 3 * (y * kWidth + x);
      if (pixel[0] <= pixel[2] + 60) continue;
      frame.left = std::min(frame.left, double(x) / kWidth);
      frame.right = std::max(frame.right, double(x + 1) / kWidth);
      frame.top = std::min(frame.top, double(y) / kHeight);
      frame.bottom = std::max(frame.bottom, double(y + 1) / kHeight);
      frame.share += 1.0 / (kWidth * kHeight);
    }
  }
  return frame;
}

class RendererOfTasks : public testing::TestWithParam<std::string> {};

TEST_P(RendererOfTasks, HasTheWholeBodyInView) {
  auto renderer = OffscreenRenderer::Make(GetParam(), kWidth, kHeight);
  if (!renderer.ok()) GTEST_SKIP() << renderer.status();
  const std::unique_ptr<Env> env = MakeEnv(GetParam()).value();
  std::vector<double> state(env->spec().state_size);
  std::vector<float> action(env->spec().action_size);
  std::vector<uint8_t> rgb(kWidth * kHeight * 3);
  RandomStream reset(1, RandomPurpose::kEvaluation, 0, 0), random(1, RandomPurpose::kAction, 0, 0);
  env->Reset(reset);
  for (const int steps : {0, 10, 40}) {  // Then it may lie on the ground.
    for (int t = 0; t < steps; ++t) {
      for (float& a : action)
        a = static_cast<float>(random.Uniform(env->spec().action_low[0], env->spec().action_high[0]));
      float reward = 0;
      env->Step(action.data(), &reward);
    }
    env->SaveState(state.data());
    (*renderer)->Render(state.data(), rgb.data());
    const Frame frame = FrameOfBody(rgb);
    EXPECT_GT(frame.share, 0.005) << "after " << steps;
    EXPECT_GT(frame.left, 0) << "after " << steps;
    EXPECT_LT(frame.right, 1) << "after " << steps;
    EXPECT_GT(frame.top, 0) << "after " << steps;
    EXPECT_LT(frame.bottom, 1) << "after " << steps;
    // Not at the edge of the picture either.
    EXPECT_NEAR((frame.left + frame.right) / 2, 0.5, 0.25) << "after " << steps;
    EXPECT_NEAR((frame.top + frame.bottom) / 2, 0.5, 0.25) << "after " << steps;
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, RendererOfTasks, testing::ValuesIn(MujocoTaskIds()),
                         [](const auto& info) { return info.param.substr(0, info.param.find('-')); });

TEST(OffscreenCaption, HasPlaceAndSpeedWhereTheTaskRuns) {
  EXPECT_EQ(OffscreenCaption(true, 1.5, 3.21, 2.1), "1.50 s   3.2 m   2.1 m/s");
  EXPECT_EQ(OffscreenCaption(false, 1.5, 0.5, 0), "1.50 s");
}

TEST(OffscreenRenderer, DrawsOnlyMujocosEnvironments) {
  EXPECT_TRUE(absl::IsNotFound(OffscreenRenderer::Make("CartPole-v1", kWidth, kHeight).status()));
}

TEST(OffscreenContext, OfEitherLibraryIsThereOrUnavailable) {
  for (const auto make : {MakeEglContext, MakeOsMesaContext}) {
    const auto context = make();
    EXPECT_TRUE(context.ok() || absl::IsUnavailable(context.status())) << context.status();
  }
}

}  // namespace
}  // namespace skein
