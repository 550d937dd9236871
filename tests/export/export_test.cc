// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "eval/checkpoint_policy.h"
#include "export/portable_actor.h"
#include "export/portable_policy.h"
#include "onnx/onnx.pb.h"
#include "policy/safetensors.h"
#include "tests/cli/scratch_folder.h"
#include "tests/export/reference_policy.h"

namespace skein {
namespace {

using testing::HasSubstr;

// The largest of |got - want| / max(1, |want|).
double Difference(const std::vector<float>& got, const std::vector<float>& want) {
  EXPECT_EQ(got.size(), want.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    if (std::isnan(got[i])) return INFINITY;
    largest = std::max(largest, std::abs(double{got[i]} - want[i]) / std::max(1.0, std::abs(double{want[i]})));
  }
  return largest;
}

// How far the reference is from choosing `got` in a step in place of `want`: the difference of their logits, or of a
// sample the largest distance of its noise from the cumulated probabilities between the two.
double Gap(const ReferencePolicy& reference, size_t step, bool sampled, int got, int want) {
  const int choices = static_cast<int>(reference.heads.size() / reference.actions.size());
  if (got < 0 || got >= choices) return INFINITY;
  const float* const logits = reference.heads.data() + step * choices;
  if (!sampled) return double{logits[want]} - logits[got];
  double sum = 0, below = 0, gap = 0;
  for (int i = 0; i < choices; ++i) sum += std::exp(double{logits[i]});
  for (int i = 0; i < std::max(got, want); ++i) {
    below += std::exp(double{logits[i]}) / sum;
    if (i >= std::min(got, want)) gap = std::max(gap, std::abs(reference.noise[step] - below));
  }
  return gap;
}

enum class Kind { kDeterministic, kSampled };

// Reals to 1e-6. Choices are the same but where those decide that may be off by 1e-6: two logits, or two probabilities.
void ExpectActions(const ReferencePolicy& reference, Kind kind, const std::vector<float>& got) {
  const std::vector<float>& want = kind == Kind::kSampled ? reference.samples : reference.actions;
  if (!reference.actor->portable().spec.discrete) {
    EXPECT_LE(Difference(got, want), 1e-6);
    return;
  }
  ASSERT_EQ(got.size(), want.size());
  for (size_t step = 0; step < want.size(); ++step) {
    if (got[step] == want[step]) continue;
    const int chosen = static_cast<int>(got[step]);
    EXPECT_LE(Gap(reference, step, kind == Kind::kSampled, chosen, static_cast<int>(want[step])), 2e-6) << step;
  }
}

class Export : public testing::TestWithParam<std::string> {
 protected:
  const ScratchFolder folder_;
  const ReferencePolicy reference_ = MakeReference(GetParam(), folder_.path());
};

TEST_P(Export, ActsAsTheEnvironmentsTransformsAndThePolicyDo) {
  const PortableActor& actor = *reference_.actor;
  const int64_t O = actor.observation_size(), H = actor.head_size();
  std::vector<float> state(actor.state_size(), 1e9f), heads(reference_.heads.size());
  for (int64_t step = 0; step < kReferenceSteps; ++step) {
    actor.Head(reference_.observations.data() + step * O, &reference_.resets[step], 1, state.data(),
               heads.data() + step * H);
  }
  EXPECT_EQ(heads, reference_.heads);
  std::vector<float> actions(reference_.actions.size());
  actor.Action(heads.data(), nullptr, kReferenceSteps, actions.data());
  EXPECT_EQ(actions, reference_.actions);
}

TEST_P(Export, AsCCompilesWithoutWarningsAndActsTheSame) {
  const PortablePolicy& portable = reference_.actor->portable();
  folder_.Write("policy.h", WriteC(portable, "skein_policy"));
  const std::string program = folder_.path() + "/drive", input = folder_.path() + "/in",
                    output = folder_.path() + "/out";
  const std::string define = portable.spec.discrete ? "-DCHOICES " : "";
  const std::string compile = std::string(SKEIN_C_COMPILER) + " -std=c99 -O2 -ffp-contract=off -Wall -Wextra -Werror " +
                              define + "-I" + folder_.path() + " tests/export/drive_policy.c -o " + program + " -lm";
  ASSERT_EQ(std::system(compile.c_str()), 0) << compile;
  const size_t O = portable.env.obs_size, H = portable.network.head_size(), D = reference_.actor->action_size();
  {
    std::ofstream in(input, std::ios::binary);
    for (size_t step = 0; step < kReferenceSteps; ++step) {
      in.write(reinterpret_cast<const char*>(&reference_.observations[step * O]), O * sizeof(float));
      in.write(reinterpret_cast<const char*>(&reference_.resets[step]), 1);
      in.write(reinterpret_cast<const char*>(&reference_.noise[step * D]), D * sizeof(float));
    }
  }
  ASSERT_EQ(std::system((program + " <" + input + " >" + output).c_str()), 0);
  std::stringstream bytes;
  bytes << std::ifstream(output, std::ios::binary).rdbuf();
  const std::string text = bytes.str();
  ASSERT_EQ(text.size(), kReferenceSteps * (H + 2 * D) * sizeof(float));
  std::vector<float> row(H + 2 * D), heads, actions, samples;
  for (size_t step = 0; step < kReferenceSteps; ++step) {
    std::copy_n(text.data() + step * row.size() * sizeof(float), row.size() * sizeof(float),
                reinterpret_cast<char*>(row.data()));
    heads.insert(heads.end(), row.begin(), row.begin() + H);
    actions.insert(actions.end(), row.begin() + H, row.begin() + H + D);
    samples.insert(samples.end(), row.begin() + H + D, row.end());
  }
  EXPECT_LE(Difference(heads, reference_.heads), 1e-6);
  ExpectActions(reference_, Kind::kDeterministic, actions);
  ExpectActions(reference_, Kind::kSampled, samples);
}

TEST_P(Export, OfTheSameCheckpointIsTheSameToTheByte) {
  const auto again = LoadCheckpointPolicy(reference_.checkpoint);
  ASSERT_TRUE(again.ok()) << again.status();
  const PortablePolicy one = reference_.actor->portable(), other = MakePortable(*again);
  EXPECT_EQ(WriteOnnx(one), WriteOnnx(other));
  EXPECT_EQ(WriteSafetensors(one), WriteSafetensors(other));
  EXPECT_EQ(WriteC(one, "p"), WriteC(other, "p"));
  EXPECT_NE(WriteC(one, "p"), WriteC(other, "q"));
}

TEST_P(Export, HasTheMetadataInEachFormat) {
  const PortablePolicy& portable = reference_.actor->portable();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(WriteOnnx(portable)));
  std::map<std::string, std::string> of_onnx, of_safetensors;
  for (const auto& entry : model.metadata_props()) of_onnx[entry.key()] = entry.value();
  EXPECT_EQ(of_onnx["skein.digest"], portable.digest);
  EXPECT_EQ(of_onnx["skein.env_id"], portable.env_id);
  EXPECT_THAT(of_onnx["skein.config_yaml"], HasSubstr(portable.env_id));
  EXPECT_FALSE(of_onnx["skein.mujoco_version"].empty());
  ASSERT_TRUE(DecodeSafetensors(WriteSafetensors(portable), &of_safetensors).ok());
  for (const auto& [key, value] : of_onnx) EXPECT_EQ(of_safetensors[key], value) << key;
  const std::string c = WriteC(portable, "p");
  EXPECT_THAT(c, HasSubstr("skein.digest: " + portable.digest));
}

INSTANTIATE_TEST_SUITE_P(Policies, Export, testing::ValuesIn(ReferenceNames()),
                         [](const auto& info) { return info.param; });

// The configuration is the user's text, and the header has it in a comment.
TEST(ExportAsC, LeavesNoTextOutsideOfTheComment) {
  const ScratchFolder folder;
  PortablePolicy portable = MakeReference("relu_choices", folder.path()).actor->portable();
  portable.metadata.emplace_back("name", "*/ #error out /*/ \\\n ?\?/\n */");
  folder.Write("policy.h", WriteC(portable, "skein_policy"));
  const std::string compile = std::string(SKEIN_C_COMPILER) + " -std=c99 -Wall -Wextra -Werror -DCHOICES -I" +
                              folder.path() + " -fsyntax-only tests/export/drive_policy.c";
  EXPECT_EQ(std::system(compile.c_str()), 0) << compile;
}

}  // namespace
}  // namespace skein
