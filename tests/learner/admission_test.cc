// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/admission.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/number/number_bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/collect/batch_assembler.h"
#include "tests/learner/sample_batch.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::vector<SampleEnd> kEnds = {{0, 1, true}, {1, 0, false}};  // One truncation, two episodes.

// T=2 E=2 A=2 O=3 D=2 S=4.
FragmentShape Shape(bool discrete = false) {
  return MakeSampleShape({.T = 2, .E = 2, .A = 2, .O = 3, .D = 2, .discrete = discrete});
}

// What admission says of a batch that arrives in small pieces: of its form, then of its values.
absl::Status Check(const v1::TrajectoryBatch& batch, const FragmentShape& shape) {
  const ReceivedBatch received(batch, 7);
  CheckedBatch checked;
  if (absl::Status s = CheckBatch(received.wire(), shape, &checked); !s.ok()) return s;
  StagedBatch staged(shape, 1);
  return staged.Place(0, 0, checked);
}

void ExpectRefused(const v1::TrajectoryBatch& batch, const std::string& message, bool discrete = false) {
  const absl::Status status = Check(batch, Shape(discrete));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

template <typename Value>
Value Element(PieceReader from, size_t index) {
  std::vector<Value> values(index + 1);
  from.Read(values.data(), values.size() * sizeof(Value));
  return values.back();
}

template <typename Value>
Value Element(FloatReader from, size_t index) {
  std::vector<Value> values(index + 1);
  EXPECT_EQ(from.ReadRows(1, values.size(), 0, kNumberBound, values.data()), values.size());
  return values.back();
}

TEST(Admission, FindsEveryTensorOfAGoodBatch) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape(), 100, kEnds);
  for (size_t piece_bytes : {0, 1, 3, 64}) {
    const ReceivedBatch received(batch, piece_bytes);
    CheckedBatch checked;
    ASSERT_TRUE(CheckBatch(received.wire(), Shape(), &checked).ok());
    EXPECT_EQ(Element<float>(checked.obs, 35), 135);     // (2 + 1) * 2 * 2 * 3 = 36 elements.
    EXPECT_EQ(Element<float>(checked.action, 15), 115);  // 2 * 2 * 2 * 2.
    EXPECT_EQ(Element<float>(checked.log_prob, 7), 93);
    EXPECT_EQ(Element<float>(checked.reward, 7), -107);
    EXPECT_EQ(checked.truncated[1], 1);
    EXPECT_EQ(checked.terminated[2], 1);
    ASSERT_EQ(checked.final_obs.size(), 6u);
    EXPECT_EQ(checked.final_obs[5], 105);
    ASSERT_EQ(checked.episode_return.size(), 2u);
    EXPECT_EQ(checked.episode_return[1], 101);
    EXPECT_EQ(checked.episode_length[1], 11);
    EXPECT_EQ(checked.env_state.SerializeAsString(), FindTensor(&batch, "env_state")->SerializeAsString());
  }
}

TEST(Admission, ReadsChoicesOfADiscreteEnvironment) {
  const ReceivedBatch received(MakeSampleBatch(Shape(true)));
  CheckedBatch checked;
  ASSERT_TRUE(CheckBatch(received.wire(), Shape(true), &checked).ok());
  EXPECT_EQ(Element<int64_t>(checked.action, 3), 1);
}

TEST(Admission, RefusesOtherStepsOrEnvironments) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape());
  batch.set_steps(3);
  ExpectRefused(batch, "steps x num_envs is 3 x 2, want 2 x 2");
  batch.set_steps(2);
  batch.set_num_envs(4294967295u);
  ExpectRefused(batch, "is 2 x 4294967295, want 2 x 2");
}

TEST(Admission, RefusesAnEpisodeOrStepThatNoEnvironmentCanBeAt) {
  FragmentShape shape = Shape();
  shape.max_episode_steps = 10;
  for (const auto& [column, value] : {std::pair{0, 0.5}, {0, -1.0}, {0, 1e12}, {1, 2.5}, {1, 10.0}, {1, -3.0}}) {
    v1::TrajectoryBatch batch = MakeSampleBatch(shape);
    v1::Tensor* tensor = FindTensor(&batch, "env_state");
    std::vector<double> state(tensor->data().size() / sizeof(double), 0);
    const auto put = [&] {
      tensor->set_data(std::string(reinterpret_cast<char*>(state.data()), tensor->data().size()));
    };
    put();
    EXPECT_TRUE(Check(batch, shape).ok());
    state[column] = value;
    put();
    EXPECT_EQ(Check(batch, shape).code(), absl::StatusCode::kInvalidArgument) << column << " " << value;
  }
}

// Every tensor, and what its shape is to be in MakeSampleBatch(Shape(), _, kEnds).
struct Field {
  const char* name;
  v1::DataType dtype;
};
constexpr Field kFields[] = {
    {"obs", v1::DATA_TYPE_FLOAT32},          {"action", v1::DATA_TYPE_FLOAT32},
    {"log_prob", v1::DATA_TYPE_FLOAT32},     {"reward", v1::DATA_TYPE_FLOAT32},
    {"terminated", v1::DATA_TYPE_UINT8},     {"truncated", v1::DATA_TYPE_UINT8},
    {"final_obs", v1::DATA_TYPE_FLOAT32},    {"episode_return", v1::DATA_TYPE_FLOAT32},
    {"episode_length", v1::DATA_TYPE_INT64}, {"env_state", v1::DATA_TYPE_FLOAT64},
};

class AdmissionField : public testing::TestWithParam<Field> {
 protected:
  void Expect(const std::string& what) {
    ExpectRefused(batch_, std::string("tensors.") + GetParam().name + ": " + what);
  }
  v1::TrajectoryBatch batch_ = MakeSampleBatch(Shape(), 0, kEnds);
  v1::Tensor* tensor_ = FindTensor(&batch_, GetParam().name);
};

TEST_P(AdmissionField, MissingIsRefused) {
  tensor_->set_name("other");
  Expect("missing");
}

TEST_P(AdmissionField, GivenTwiceIsRefused) {
  *batch_.add_tensors() = *tensor_;
  Expect("given twice");
}

TEST_P(AdmissionField, OtherTypeIsRefused) {
  tensor_->set_dtype(v1::DATA_TYPE_INT32);
  Expect("dtype is DATA_TYPE_INT32, want " + v1::DataType_Name(GetParam().dtype));
  tensor_->set_dtype(static_cast<v1::DataType>(77));
  Expect("dtype is ");
}

TEST_P(AdmissionField, OtherShapeIsRefused) {
  const v1::Tensor good = *tensor_;
  tensor_->set_shape(0, good.shape(0) + 1);
  Expect("shape is [");
  *tensor_ = good;
  tensor_->add_shape(1);
  Expect("shape is [");
  *tensor_ = good;
  tensor_->mutable_shape()->RemoveLast();
  Expect("shape is [");
  tensor_->clear_shape();
  Expect("shape is [], want [");
}

TEST_P(AdmissionField, HostileExtentsAreRefused) {
  const v1::Tensor good = *tensor_;
  // Their product overflows to something small, or is negative.
  for (int64_t extent : {int64_t{-1}, int64_t{1} << 32, int64_t{1} << 62, std::numeric_limits<int64_t>::max(),
                         std::numeric_limits<int64_t>::min()}) {
    *tensor_ = good;
    for (int i = 0; i < tensor_->shape_size(); ++i) tensor_->set_shape(i, extent);
    Expect("shape is [");
    *tensor_ = good;
    tensor_->set_shape(0, extent);
    Expect("shape is [");
  }
}

TEST_P(AdmissionField, OtherByteCountIsRefused) {
  tensor_->mutable_data()->pop_back();
  Expect("has ");
  tensor_->mutable_data()->append(2, '\0');
  Expect("has ");
  tensor_->clear_data();
  Expect("has 0 bytes, its shape and dtype want ");
}

TEST_P(AdmissionField, NotFiniteIsRefused) {
  const v1::Tensor good = *tensor_;
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                     -std::numeric_limits<double>::infinity()}) {
    *tensor_ = good;
    size_t last = 0;
    if (GetParam().dtype == v1::DATA_TYPE_FLOAT32) {
      last = good.data().size() / sizeof(float) - 1;
      SetElement(tensor_, last, static_cast<float>(bad));
    } else if (GetParam().dtype == v1::DATA_TYPE_FLOAT64) {
      last = good.data().size() / sizeof(double) - 1;
      SetElement(tensor_, last, bad);
    } else {
      return;
    }
    Expect("element " + std::to_string(last) + " is not finite");
  }
}

TEST_P(AdmissionField, BeyondItsBoundIsRefused) {
  if (GetParam().dtype != v1::DATA_TYPE_FLOAT32) return;
  const bool of_episodes = std::string(GetParam().name) == "episode_return";
  const float bound = of_episodes ? kEpisodeBound : kNumberBound;
  const v1::Tensor good = *tensor_;
  const size_t last = good.data().size() / sizeof(float) - 1;
  for (const float at_most : {bound, -bound, kNumberBound}) {
    *tensor_ = good;
    SetElement(tensor_, last, at_most);
    const absl::Status status = Check(batch_, Shape());
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const float beyond : {std::nextafter(bound, 2 * bound), -1.5f * bound, 1e25f}) {
    for (const size_t element : {size_t{0}, last}) {
      *tensor_ = good;
      SetElement(tensor_, element, beyond);
      Expect(absl::StrCat("element ", element, " is ", beyond, ", want magnitudes up to ", bound));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, AdmissionField, testing::ValuesIn(kFields),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Admission, RefusesFlagsThatAreNotZeroOrOneAndBothAtOnce) {
  const v1::TrajectoryBatch good = MakeSampleBatch(Shape(), 0, kEnds);
  v1::TrajectoryBatch batch = good;
  SetElement<uint8_t>(FindTensor(&batch, "terminated"), 1, 1);  // Element 1 is truncated already.
  ExpectRefused(batch, "tensors.terminated: element 1 is 1 and truncated is 1");
  batch = good;
  SetElement<uint8_t>(FindTensor(&batch, "terminated"), 3, 2);
  ExpectRefused(batch, "tensors.terminated: element 3 is 2 and truncated is 0");
  batch = good;
  SetElement<uint8_t>(FindTensor(&batch, "truncated"), 0, 255);
  ExpectRefused(batch, "tensors.terminated: element 0 is 0 and truncated is 255");
}

TEST(Admission, RefusesChoicesOutOfRange) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape(true));
  SetElement<int64_t>(FindTensor(&batch, "action"), 2, 2);
  ExpectRefused(batch, "tensors.action: element 2 is no choice of this environment", true);
  SetElement<int64_t>(FindTensor(&batch, "action"), 2, -1);
  ExpectRefused(batch, "tensors.action: element 2 is no choice of this environment", true);
}

TEST(Admission, RefusesLengthsThatNoEpisodeHas) {
  FragmentShape shape = Shape();
  shape.max_episode_steps = 20;
  for (const int64_t length : {1, 20}) {
    v1::TrajectoryBatch batch = MakeSampleBatch(shape, 0, kEnds);
    SetElement(FindTensor(&batch, "episode_length"), 1, length);
    EXPECT_TRUE(Check(batch, shape).ok()) << length;
  }
  for (const int64_t length : {int64_t{-1}, int64_t{0}, int64_t{21}, std::numeric_limits<int64_t>::max()}) {
    v1::TrajectoryBatch batch = MakeSampleBatch(shape, 0, kEnds);
    SetElement(FindTensor(&batch, "episode_length"), 1, length);
    EXPECT_THAT(std::string(Check(batch, shape).message()),
                HasSubstr(absl::StrCat("tensors.episode_length: element 1 is ", length, ", want 1 to 20")));
  }
}

TEST(Admission, RefusesRealActionsOfADiscreteEnvironmentAndChoicesOfAContinuousOne) {
  ExpectRefused(MakeSampleBatch(Shape(false)), "tensors.action: dtype is DATA_TYPE_FLOAT32", true);
  ExpectRefused(MakeSampleBatch(Shape(true)), "tensors.action: dtype is DATA_TYPE_INT64", false);
}

TEST(Admission, WantsOneFinalObservationForEachTruncationAndOneReturnForEachEpisode) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape());
  SetElement<uint8_t>(FindTensor(&batch, "truncated"), 2, 1);
  ExpectRefused(batch, "tensors.final_obs: shape is [0, 2, 3], want [1, 2, 3]");
  batch = MakeSampleBatch(Shape());
  SetElement<uint8_t>(FindTensor(&batch, "terminated"), 2, 1);
  ExpectRefused(batch, "tensors.episode_return: shape is [0], want [1]");
}

TEST(Admission, ShowsNoMoreOfAHostileShapeThanAValidOneHas) {
  v1::TrajectoryBatch batch = MakeSampleBatch(Shape());
  for (int i = 0; i < 100; ++i) FindTensor(&batch, "obs")->add_shape(7);
  ExpectRefused(batch, "tensors.obs: shape is [3, 2, 2, 3, 7, 7, 7, 7, ...], want [3, 2, 2, 3]");
}

TEST(Admission, NamesTheSpecFieldThatDiffers) {
  v1::EnvSpecInfo want = Shape().spec;
  EXPECT_TRUE(CheckEnvSpec(want, want).ok());
  const auto expect = [&](const v1::EnvSpecInfo& got, const std::string& message) {
    const absl::Status status = CheckEnvSpec(got, want);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), StartsWith("env_spec." + message));
  };
  v1::EnvSpecInfo got = want;
  got.set_env_id("Other-v1");
  expect(got, "env_id: the actor has Other-v1, this run has Sample-v0; start");
  got = want;
  got.set_obs_size(4);
  expect(got, "obs_size: the actor has 4, this run has 3, so tensor obs differs; start it from the same release");
  got = want;
  got.set_action_size(9);
  expect(got, "action_size: the actor has 9, this run has 2, so tensor action differs");
  got = want;
  got.set_discrete(true);
  expect(got, "discrete: ");
  got = want;
  got.set_num_agents(1);
  expect(got, "num_agents: the actor has 1, this run has 2");
  got = want;
  got.set_global_state_size(5);
  expect(got, "global_state_size: the actor has 5, this run has 0");
}

// Teams of two with a global state of three floats and one metric.
FragmentShape TeamShape() { return MakeSampleShape({.T = 2, .E = 2, .A = 2, .O = 3, .D = 2, .G = 3, .P = 1}); }

void ExpectTeamRefused(const v1::TrajectoryBatch& batch, const std::string& message) {
  EXPECT_THAT(std::string(Check(batch, TeamShape()).message()), HasSubstr(message));
}

TEST(Admission, FindsWhatBelongsToTeams) {
  const v1::TrajectoryBatch batch = MakeSampleBatch(TeamShape(), 100, kEnds);
  const ReceivedBatch received(batch, 5);
  CheckedBatch checked;
  ASSERT_TRUE(CheckBatch(received.wire(), TeamShape(), &checked).ok());
  EXPECT_EQ(Element<float>(checked.state, 17), 117);  // (2 + 1) * 2 * 3 = 18 elements.
  EXPECT_EQ(checked.final_state.size(), 3u);
  EXPECT_EQ(checked.active.size(), 8u);
  EXPECT_EQ(checked.agent_terminated[4], 1);  // Step 1, environment 0.
  EXPECT_EQ(checked.episode_metrics.size(), 2u);
}

TEST(Admission, RefusesAgentFlagsThatContradictEachOther) {
  const v1::TrajectoryBatch good = MakeSampleBatch(TeamShape(), 100, kEnds);
  v1::TrajectoryBatch batch = good;
  SetElement<uint8_t>(FindTensor(&batch, "active"), 3, 2);
  ExpectTeamRefused(batch, "tensors.agent_terminated: element 3 is 0 and active is 2");
  batch = good;
  SetElement<uint8_t>(FindTensor(&batch, "active"), 0, 0);
  SetElement<uint8_t>(FindTensor(&batch, "agent_terminated"), 0, 1);
  ExpectTeamRefused(batch, "tensors.agent_terminated: element 0 is 1 and active is 0");
  batch = good;
  SetElement<uint8_t>(FindTensor(&batch, "agent_terminated"), 5, 0);
  ExpectTeamRefused(batch, "element 5 is 0 of an active agent whose episode terminated");
}

TEST(Admission, RefusesTeamsWithoutStateFlagsOrMetrics) {
  for (const char* name : {"state", "final_state", "active", "agent_terminated", "episode_metrics"}) {
    v1::TrajectoryBatch batch = MakeSampleBatch(TeamShape(), 100, kEnds);
    FindTensor(&batch, name)->set_name("other");
    ExpectTeamRefused(batch, std::string("tensors.") + name + ": missing");
  }
  for (const char* name : {"state", "final_state", "episode_metrics"}) {
    v1::TrajectoryBatch batch = MakeSampleBatch(TeamShape(), 100, kEnds);
    SetElement(FindTensor(&batch, name), 1, std::numeric_limits<float>::infinity());
    ExpectTeamRefused(batch, std::string("tensors.") + name + ": element 1 is not finite");
    SetElement(FindTensor(&batch, name), 1, 2 * kEpisodeBound);
    ExpectTeamRefused(batch, std::string("tensors.") + name + ": element 1 is 2e+12, want magnitudes up to ");
  }
  v1::EnvSpecInfo other = TeamShape().spec;
  other.set_episode_metrics(0, "height");
  EXPECT_THAT(std::string(CheckEnvSpec(other, TeamShape().spec).message()),
              HasSubstr("episode_metrics: the actor has height, this run has metric_0"));
}

}  // namespace
}  // namespace skein
