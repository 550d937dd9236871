// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/admission.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/net/protocol.h"
#include "base/number/number_bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/collect/staged_columns.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::vector<SampleEnd> kEnds = {{0, 1, true}, {1, 0, false}};  // One truncation, two episodes.

// T=2 E=2 A=2 O=3 D=2 S=4.
FragmentShape Shape(bool discrete = false) {
  return MakeSampleShape({.T = 2, .E = 2, .A = 2, .O = 3, .D = 2, .discrete = discrete});
}

void ExpectRefused(const SampleFragment& fragment, const std::string& message, bool discrete = false) {
  const absl::Status status = Admit(fragment, Shape(discrete));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(Admission, FindsEveryFieldOfAGoodFragment) {
  const SampleFragment fragment = MakeSampleFragment(Shape(), 100, kEnds);
  const Schema schema = MakeSchema(Shape());
  for (size_t piece_bytes : {0, 1, 3, 64}) {
    const ReceivedFragment received(fragment, piece_bytes);
    CheckedFragment checked;
    ASSERT_TRUE(CheckFragment(received.frame(), schema, &checked).ok());
    EXPECT_EQ(checked.counts.truncations, 1);
    EXPECT_EQ(checked.counts.episodes, 2);
    ASSERT_EQ(checked.fields.size(), fragment.fields.size());
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const std::string& want = fragment.fields[i].data;
      std::string got(want.size(), '\0');
      PieceReader(checked.fields[i].data).Read(got.data(), got.size());
      EXPECT_EQ(got, want) << schema.fields[i].name;
      // Those with rows for steps are looked at later, but for flags.
      if (schema.fields[i].of_steps() && schema.fields[i].bound != Bound::kFlag) continue;
      EXPECT_EQ(std::string(checked.fields[i].values.begin(), checked.fields[i].values.end()), want);
    }
    EXPECT_EQ(checked.values<float>("final_obs").at(5), 105);  // 1 * 2 * 3 elements.
    EXPECT_EQ(checked.values<int64_t>("episode_length").at(1), 11);
    EXPECT_EQ(checked.state.env_state->name(), "env_state");
    EXPECT_EQ(checked.state.env_state->dtype(), v1::DATA_TYPE_FLOAT64);
    EXPECT_THAT(checked.state.env_state->shape(), ElementsAre(2, 4));
    EXPECT_EQ(checked.state.env_state->data().size(), 2 * 4 * sizeof(double));
    EXPECT_FALSE(checked.state.policy_state);
  }
}

TEST(Admission, GivesBackWhatThePolicyRemembers) {
  FragmentShape shape = Shape();
  shape.policy_state_size = 5;
  SampleFragment fragment = MakeSampleFragment(shape, 100, kEnds);
  const ReceivedFragment received(fragment, 7);
  const Schema schema = MakeSchema(shape);
  CheckedFragment checked;
  ASSERT_TRUE(CheckFragment(received.frame(), schema, &checked).ok());
  EXPECT_THAT(checked.state.policy_state->shape(), ElementsAre(2, 2, 5));
  EXPECT_EQ(checked.state.policy_state->data(), fragment.Find("policy_state")->data);
  SetElement(fragment.Find("policy_state"), 3, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(std::string(Admit(fragment, shape).message()), HasSubstr("fields.policy_state: element 3 is not finite"));
}

TEST(Admission, WantsExactlyTheFieldsThatTheAlgorithmReads) {
  FragmentShape without = Shape();
  without.algorithm_fields = {};
  const SampleFragment fragment = MakeSampleFragment(without, 100, kEnds),
                       with = MakeSampleFragment(Shape(), 100, kEnds);
  EXPECT_TRUE(Admit(fragment, without).ok());
  EXPECT_THAT(std::string(Admit(fragment, Shape()).message()), HasSubstr("fields.log_prob: missing; in its place is"));
  EXPECT_THAT(std::string(Admit(with, without).message()), HasSubstr("fields.reward: missing; in its place is"));
}

TEST(Admission, RefusesOtherStepsOrEnvironments) {
  SampleFragment fragment = MakeSampleFragment(Shape());
  fragment.header.set_steps(3);
  ExpectRefused(fragment, "steps x group_envs is 3 x 2, want 2 x 2");
  fragment.header.set_steps(2);
  fragment.header.set_group_envs(4294967295u);
  ExpectRefused(fragment, "is 2 x 4294967295, want 2 x 2");
}

TEST(Admission, RefusesAnEpisodeOrStepThatNoEnvironmentCanBeAt) {
  FragmentShape shape = Shape();
  shape.max_episode_steps = 10;
  for (const auto& [column, value] : {std::pair{0, 0.5}, {0, -1.0}, {0, 1e12}, {1, 2.5}, {1, 10.0}, {1, -3.0}}) {
    SampleFragment fragment = MakeSampleFragment(shape);
    SampleField* field = fragment.Find("env_state");
    std::vector<double> state(field->data.size() / sizeof(double), 0);
    const auto put = [&] { field->data.assign(reinterpret_cast<char*>(state.data()), field->data.size()); };
    put();
    EXPECT_TRUE(Admit(fragment, shape).ok());
    state[column] = value;
    put();
    EXPECT_EQ(Admit(fragment, shape).code(), absl::StatusCode::kInvalidArgument) << column << " " << value;
  }
}

// Every field of a fragment, by name.
std::vector<std::string> FieldNames(const FragmentShape& shape) {
  std::vector<std::string> names;
  for (const Field& field : MakeSchema(shape).fields) names.push_back(field.name);
  return names;
}

// Of a team with state and metrics, so that all there is is tried.
FragmentShape TeamShape() { return MakeSampleShape({.T = 2, .E = 2, .A = 2, .O = 3, .D = 2, .G = 3, .P = 1}); }

void ExpectTeamRefused(const SampleFragment& fragment, const std::string& message) {
  const absl::Status status = Admit(fragment, TeamShape());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

class AdmissionField : public testing::TestWithParam<std::string> {
 protected:
  void Expect(const std::string& what) { ExpectTeamRefused(fragment_, "fields." + GetParam() + ": " + what); }
  const Schema schema_ = MakeSchema(TeamShape());
  const Field described_ = schema_.fields.at(schema_.Find(GetParam()));
  SampleFragment fragment_ = MakeSampleFragment(TeamShape(), 0, kEnds);
  SampleField* field_ = fragment_.Find(GetParam());
};

TEST_P(AdmissionField, MissingIsRefused) {
  field_->name = "other";
  Expect("missing; in its place is \"other\"");
}

TEST_P(AdmissionField, LeftOutIsRefused) {
  const auto at = static_cast<size_t>(schema_.Find(GetParam()));
  fragment_.fields.erase(fragment_.fields.begin() + schema_.Find(GetParam()));
  Expect(at + 1 == schema_.fields.size() ? "missing" : "missing; in its place is \"" + schema_.fields[at + 1].name);
}

TEST_P(AdmissionField, GivenTwiceIsRefused) {
  const SampleField again = *field_;
  fragment_.fields.push_back(again);
  ExpectTeamRefused(fragment_,
                    absl::StrCat("fields: got ", schema_.fields.size() + 1, ", want ", schema_.fields.size()));
}

TEST_P(AdmissionField, OtherTypeIsRefused) {
  field_->dtype = v1::DATA_TYPE_INT32;
  Expect("dtype is DATA_TYPE_INT32, want " + v1::DataType_Name(described_.dtype));
  field_->dtype = static_cast<v1::DataType>(77);
  Expect("dtype is unknown (77), want " + v1::DataType_Name(described_.dtype));
}

TEST_P(AdmissionField, OtherByteCountIsRefused) {
  const std::string good = field_->data;
  field_->data.pop_back();
  Expect(absl::StrCat("has ", good.size() - 1, " bytes, want ", good.size()));
  field_->data.append(2, '\0');
  Expect("has ");
  field_->data.clear();
  Expect(absl::StrCat("has 0 bytes, want ", good.size()));
}

TEST_P(AdmissionField, HostileSizesAreRefused) {
  for (const uint64_t bytes : {uint64_t{1} << 32, uint64_t{1} << 62, std::numeric_limits<uint64_t>::max()}) {
    field_->claimed_bytes = bytes;
    field_->compression = v1::COMPRESSION_UNSPECIFIED;
    Expect(absl::StrCat("has ", bytes, " bytes, want "));
    field_->compression = v1::COMPRESSION_ZSTD;
    Expect(absl::StrCat("has ", bytes, " bytes compressed, want at most "));
  }
}

TEST_P(AdmissionField, NotFiniteIsRefused) {
  const SampleField good = *field_;
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                     -std::numeric_limits<double>::infinity()}) {
    *field_ = good;
    size_t last = 0;
    if (described_.dtype == v1::DATA_TYPE_FLOAT32) {
      last = good.data.size() / sizeof(float) - 1;
      SetElement(field_, last, static_cast<float>(bad));
    } else if (described_.dtype == v1::DATA_TYPE_FLOAT64) {
      last = good.data.size() / sizeof(double) - 1;
      SetElement(field_, last, bad);
    } else {
      return;
    }
    Expect("element " + std::to_string(last) + " is not finite");
  }
}

TEST_P(AdmissionField, BeyondItsBoundIsRefused) {
  if (described_.bound != Bound::kNumber && described_.bound != Bound::kEpisode) return;
  const float bound = described_.bound == Bound::kEpisode ? kEpisodeBound : kNumberBound;
  const SampleField good = *field_;
  const size_t last = good.data.size() / sizeof(float) - 1;
  for (const float at_most : {bound, -bound, kNumberBound}) {
    *field_ = good;
    SetElement(field_, last, at_most);
    const absl::Status status = Admit(fragment_, TeamShape());
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const float beyond : {std::nextafter(bound, 2 * bound), -1.5f * bound, 1e25f}) {
    for (const size_t element : {size_t{0}, last}) {
      *field_ = good;
      SetElement(field_, element, beyond);
      Expect(absl::StrCat("element ", element, " is ", beyond, ", want magnitudes up to ", bound));
    }
  }
}

TEST_P(AdmissionField, OtherFlagsThanZeroAndOneAreRefused) {
  if (described_.bound != Bound::kFlag) return;
  const SampleField good = *field_;
  for (const int bad : {2, 255}) {
    for (const size_t element : {size_t{0}, good.data.size() - 1}) {
      *field_ = good;
      SetElement<uint8_t>(field_, element, static_cast<uint8_t>(bad));
      Expect(absl::StrCat("element ", element, " is ", bad, ", want 0 or 1"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, AdmissionField, testing::ValuesIn(FieldNames(TeamShape())),
                         [](const auto& info) { return info.param; });

TEST(Admission, RefusesABlockOfAnotherSize) {
  const FragmentShape shape = Shape();
  const std::string good = MakeSampleFragment(shape, 0, kEnds).Bytes();
  const Schema schema = MakeSchema(shape);
  for (const std::string& bytes : {good + "x", good.substr(0, good.size() - 1), good.substr(0, good.size() / 2)}) {
    const ReceivedFragment received(bytes, 50);
    CheckedFragment checked;
    const absl::Status status = CheckFragment(received.frame(), schema, &checked);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("fields: their block has "));
  }
}

// Whatever bytes are changed, what is read lies within what was received (sanitizers watch).
TEST(Admission, StaysWithinWhatItWasGiven) {
  const Schema schema = MakeSchema(TeamShape());
  const std::string good = MakeSampleFragment(TeamShape(), 5, kEnds).Bytes();
  std::mt19937 random(7);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    Pieces pieces;
    const size_t piece_bytes = 1 + random() % 100;
    for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
      pieces.emplace_back(bytes.data() + at, std::min(piece_bytes, bytes.size() - at));
    }
    const auto frame = ReadFrame(pieces);
    if (!frame.ok() || !frame->header.has_fragment()) continue;
    ++read;
    CheckedFragment checked;
    if (!CheckFragment(*frame, schema, &checked).ok()) continue;
    StagedColumns staged(schema, 1);
    staged.Place(0, 0, checked).IgnoreError();
  }
  EXPECT_GT(read, 100);
}

TEST(Admission, RefusesAStepThatBothTerminatedAndWasCut) {
  SampleFragment fragment = MakeSampleFragment(Shape(), 0, kEnds);
  SetElement<uint8_t>(fragment.Find("terminated"), 1, 1);  // Element 1 is truncated already.
  ExpectRefused(fragment, "fields.terminated: element 1 is 1 and truncated is 1");
}

TEST(Admission, RefusesChoicesOutOfRange) {
  SampleFragment fragment = MakeSampleFragment(Shape(true));
  SetElement<int64_t>(fragment.Find("action"), 2, 2);
  ExpectRefused(fragment, "fields.action: element 2 is no choice of this environment", true);
  SetElement<int64_t>(fragment.Find("action"), 2, -1);
  ExpectRefused(fragment, "fields.action: element 2 is no choice of this environment", true);
}

TEST(Admission, RefusesLengthsThatNoEpisodeHas) {
  FragmentShape shape = Shape();
  shape.max_episode_steps = 20;
  for (const int64_t length : {1, 20}) {
    SampleFragment fragment = MakeSampleFragment(shape, 0, kEnds);
    SetElement(fragment.Find("episode_length"), 1, length);
    EXPECT_TRUE(Admit(fragment, shape).ok()) << length;
  }
  for (const int64_t length : {int64_t{-1}, int64_t{0}, int64_t{21}, std::numeric_limits<int64_t>::max()}) {
    SampleFragment fragment = MakeSampleFragment(shape, 0, kEnds);
    SetElement(fragment.Find("episode_length"), 1, length);
    EXPECT_THAT(std::string(Admit(fragment, shape).message()),
                HasSubstr(absl::StrCat("fields.episode_length: element 1 is ", length, ", want 1 to 20")));
  }
}

TEST(Admission, RefusesRealActionsOfADiscreteEnvironmentAndChoicesOfAContinuousOne) {
  ExpectRefused(MakeSampleFragment(Shape(false)), "fields.action: dtype is DATA_TYPE_FLOAT32", true);
  ExpectRefused(MakeSampleFragment(Shape(true)), "fields.action: dtype is DATA_TYPE_INT64", false);
}

TEST(Admission, WantsOneFinalObservationForEachTruncationAndOneReturnForEachEpisode) {
  SampleFragment fragment = MakeSampleFragment(Shape());
  SetElement<uint8_t>(fragment.Find("truncated"), 2, 1);
  ExpectRefused(fragment, "truncations, episodes: got 0, 0, the flags say 1, 1");
  fragment.header.set_truncations(1);
  fragment.header.set_episodes(1);
  ExpectRefused(fragment, "fields.final_obs: has 0 bytes, want 24");  // 2 agents x 3 floats.
  fragment = MakeSampleFragment(Shape());
  SetElement<uint8_t>(fragment.Find("terminated"), 2, 1);
  ExpectRefused(fragment, "truncations, episodes: got 0, 0, the flags say 0, 1");
  fragment.header.set_episodes(1);
  ExpectRefused(fragment, "fields.episode_return: has 0 bytes, want 4");
}

TEST(Admission, RefusesCountsThatNoFragmentHas) {
  for (const auto& [truncations, episodes] : {std::pair{0u, 5u}, {3u, 2u}, {4294967295u, 4294967295u}}) {
    SampleFragment fragment = MakeSampleFragment(Shape());  // 2 x 2 steps.
    fragment.header.set_truncations(truncations);
    fragment.header.set_episodes(episodes);
    ExpectRefused(fragment,
                  absl::StrCat("truncations, episodes: got ", truncations, ", ", episodes, ", want at most 4"));
  }
}

TEST(Admission, WantsNothingButAFinalObservationOfEpisodesThatFailed) {
  SampleFragment fragment = MakeSampleFragment(Shape(), 0, {{0, 1, true}});
  fragment.header.set_episodes(0);
  fragment.header.set_failed_episodes(1);
  ExpectRefused(fragment, "fields.episode_return: has 4 bytes, want 0");
  for (const char* const field : {"episode_return", "episode_length"}) fragment.Find(field)->data.clear();
  EXPECT_TRUE(Admit(fragment, Shape()).ok());
  fragment.header.set_failed_episodes(2);
  ExpectRefused(fragment, "failed_episodes: got 2, want at most the 1 truncations");
  fragment.header.set_failed_episodes(4294967295u);
  ExpectRefused(fragment, "truncations, episodes: got 1, 4294967295, want at most 4");
  fragment.header.set_failed_episodes(0);
  ExpectRefused(fragment, "truncations, episodes: got 1, 0, want at most 4");
  fragment = MakeSampleFragment(Shape(), 0, kEnds);
  fragment.header.set_failed_episodes(1);
  ExpectRefused(fragment, "truncations, episodes: got 1, 3, the flags say 1, 2");
}

TEST(Admission, ShowsNoMoreOfAHostileNameThanAnExcerpt) {
  SampleFragment fragment = MakeSampleFragment(Shape());
  fragment.Find("obs")->name = std::string(5000, 'x');
  const absl::Status status = Admit(fragment, Shape());
  EXPECT_THAT(std::string(status.message()), HasSubstr("fields.obs: missing; in its place is \"xxx"));
  EXPECT_LT(status.message().size(), 300u);
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
  expect(got, "obs_size: the actor has 4, this run has 3, so field obs differs; start it from the same release");
  got = want;
  got.set_action_size(9);
  expect(got, "action_size: the actor has 9, this run has 2, so field action differs");
  got = want;
  got.set_discrete(true);
  expect(got, "discrete: ");
  got = want;
  got.set_num_agents(1);
  expect(got, "num_agents: the actor has 1, this run has 2");
  got = want;
  got.set_global_state_size(5);
  expect(got, "global_state_size: the actor has 5, this run has 0");
  got = want;
  got.set_relocatable(!want.relocatable());
  expect(got, "relocatable: ");
}

TEST(Admission, RefusesAgentFlagsThatContradictEachOther) {
  const SampleFragment good = MakeSampleFragment(TeamShape(), 100, kEnds);
  SampleFragment fragment = good;
  SetElement<uint8_t>(fragment.Find("active"), 0, 0);
  SetElement<uint8_t>(fragment.Find("agent_terminated"), 0, 1);
  ExpectTeamRefused(fragment, "fields.agent_terminated: element 0 is 1 and active is 0");
  fragment = good;
  SetElement<uint8_t>(fragment.Find("agent_terminated"), 5, 0);
  ExpectTeamRefused(fragment, "element 5 is 0 of an active agent whose episode terminated");
}

TEST(Admission, NamesTheMetricsThatDiffer) {
  v1::EnvSpecInfo other = TeamShape().spec;
  other.set_episode_metrics(0, "height");
  EXPECT_THAT(std::string(CheckEnvSpec(other, TeamShape().spec).message()),
              HasSubstr("episode_metrics: the actor has height, this run has metric_0"));
}

TEST(Admission, NamesBothVersionsOfAnotherProtocol) {
  v1::Hello hello;
  hello.set_protocol_major(kProtocolMajor);
  EXPECT_TRUE(CheckProtocol(hello).ok());
  hello.set_protocol_major(1);
  hello.set_protocol_minor(7);
  const absl::Status status = CheckProtocol(hello);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("protocol 1.7 of the actor and 2.0 of the learner"));
}

}  // namespace
}  // namespace skein
