// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/staged_columns.h"

#include <algorithm>
#include <memory>

#include "base/number/tensor_packing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

struct AdmittedFragment {
  AdmittedFragment(const FragmentShape& shape, float offset, const std::vector<SampleEnd>& ends)
      : schema(MakeSchema(shape)),
        fragment(MakeSampleFragment(shape, offset, ends)),
        received(fragment, 50),
        values(fragment, shape) {
    EXPECT_TRUE(CheckFragment(received.frame(), schema, &checked).ok());
  }
  const Schema schema;
  const SampleFragment fragment;
  const ReceivedFragment received;
  const FragmentValues values;
  CheckedFragment checked;
};
using AdmittedFragments = std::vector<std::unique_ptr<AdmittedFragment>>;

AdmittedFragments MakeFragments(const FragmentShape& shape, const std::vector<std::vector<SampleEnd>>& ends) {
  AdmittedFragments fragments;
  for (size_t b = 0; b < ends.size(); ++b) {
    fragments.push_back(std::make_unique<AdmittedFragment>(shape, 1000.0f * static_cast<float>(b + 1), ends[b]));
  }
  return fragments;
}

// Element by element: environment n of N is environment n % E of fragment n / E, agents are neighbouring columns. Of a
// field with rows for steps.
void ExpectColumn(const StagedColumns& staged, const Columns::Column& column, const SampleSizes& z,
                  const AdmittedFragments& fragments) {
  const Field& field = column.field;
  const int64_t N = z.E * static_cast<int64_t>(fragments.size()), A = field.per_agent ? z.A : 1;
  // Flags of an episode are those of each agent that was alive, which all are.
  const bool of_episode = field.name == "terminated" || field.name == "truncated";
  const int64_t agents = of_episode ? 1 : A, bytes = field.elements() * ElementSize(field.dtype);
  const int64_t rows = field.extent == Extent::kStepAndLast ? z.T + 1 : z.T;
  ASSERT_EQ(static_cast<int64_t>(column.bytes.size()), rows * N * A * bytes) << field.name;
  ASSERT_EQ(staged.Dimensions(column).at(0), rows);
  ASSERT_EQ(staged.Dimensions(column).at(1), N * A);
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t n = 0; n < N; ++n) {
      const std::vector<char>& from = fragments[n / z.E]->values.all().at(field.name);
      for (int64_t a = 0; a < A; ++a) {
        const int64_t source = (t * z.E + n % z.E) * agents + (of_episode ? 0 : a), to = (t * N + n) * A + a;
        for (int64_t i = 0; i < bytes; ++i) {
          ASSERT_EQ(column.bytes[to * bytes + i], from[source * bytes + i]) << field.name << " " << t << " " << n;
        }
      }
    }
  }
}

void ExpectPlaced(const StagedColumns& staged, const SampleSizes& z, const AdmittedFragments& fragments) {
  ASSERT_EQ(staged.columns(), z.E * z.A * static_cast<int64_t>(fragments.size()));
  int fields = 0;
  for (const Columns::Column& column : staged.all()) {
    if (!column.field.of_steps()) continue;
    ExpectColumn(staged, column, z, fragments);
    ++fields;
  }
  const Schema& schema = fragments.front()->schema;
  const auto of_steps = [](const Field& field) { return field.of_steps() && field.name != "agent_terminated"; };
  EXPECT_EQ(fields, std::count_if(schema.fields.begin(), schema.fields.end(), of_steps));
}

// Every truncated column has its own row of the final observations and nothing else has.
void ExpectFinalObservations(const StagedColumns& staged, const SampleSizes& z, const AdmittedFragments& fragments) {
  const int64_t M = staged.columns();
  std::vector<int64_t> want_index;
  std::vector<float> want_obs;
  for (size_t b = 0; b < fragments.size(); ++b) {
    const FragmentValues& values = fragments[b]->values;
    int64_t k = 0;
    for (int64_t t = 0; t < z.T; ++t) {
      for (int64_t e = 0; e < z.E; ++e) {
        if (!values.flags("truncated")[t * z.E + e]) continue;
        for (int64_t a = 0; a < z.A; ++a) {
          want_index.push_back(t * M + (static_cast<int64_t>(b) * z.E + e) * z.A + a);
          for (int64_t o = 0; o < z.O; ++o) want_obs.push_back(values.floats("final_obs")[(k * z.A + a) * z.O + o]);
        }
        ++k;
      }
    }
  }
  EXPECT_THAT(staged.values<int64_t>("final_index"), ElementsAreArray(want_index));
  EXPECT_THAT(staged.values<float>("final_obs"), ElementsAreArray(want_obs));
}

// What a field holds; none if there is no such field.
absl::Span<const float> Floats(const Columns& columns, const char* field) { return columns.values<float>(field); }
absl::Span<const int64_t> Ints(const Columns& columns, const char* field) { return columns.values<int64_t>(field); }
absl::Span<const uint8_t> Flags(const Columns& columns, const char* field) { return columns.values<uint8_t>(field); }

TEST(StagedColumns, PlacesWhatALiteralLoopPlaces) {
  const std::vector<std::vector<SampleEnd>> ends = {
      {{0, 1, true}, {2, 0, false}, {3, 0, true}}, {}, {{1, 0, false}, {1, 1, true}}};
  for (const bool discrete : {false, true}) {
    for (const int64_t agents : {1, 3}) {
      const SampleSizes sizes = {.T = 4, .E = 2, .A = agents, .O = 3, .D = 2, .discrete = discrete};
      const FragmentShape shape = MakeSampleShape(sizes);
      const AdmittedFragments fragments = MakeFragments(shape, ends);
      StagedColumns staged(shape, 3);
      EXPECT_EQ(staged.steps(), 4);
      EXPECT_EQ(staged.share_envs(), 6);
      for (const int64_t b : {2, 0, 1}) ASSERT_TRUE(staged.Place(b, 0, fragments[b]->checked).ok());
      staged.Seal();
      ExpectPlaced(staged, sizes, fragments);
      ExpectFinalObservations(staged, sizes, fragments);
      // Offset 1000 (b + 1) plus the episode's place in its fragment.
      EXPECT_THAT(Floats(staged, "episode_return"), ElementsAre(1000, 1001, 1002, 3000, 3001));
      EXPECT_THAT(Ints(staged, "episode_length"), ElementsAre(10, 11, 12, 10, 11));
    }
  }
}

TEST(StagedColumns, ReusedBuffersForgetTheIterationBefore) {
  const SampleSizes sizes = {.T = 2, .E = 1};
  const FragmentShape shape = MakeSampleShape(sizes);
  StagedColumns staged(shape, 2);
  const AdmittedFragments before = MakeFragments(shape, {{{0, 0, true}}, {{1, 0, true}}});
  for (int64_t b : {0, 1}) ASSERT_TRUE(staged.Place(b, 0, before[b]->checked).ok());
  staged.Seal();
  EXPECT_THAT(Ints(staged, "final_index"), ElementsAre(0, 3));  // t * M + column with M = 2.
  const AdmittedFragments after = MakeFragments(shape, {{}, {}});
  for (int64_t b : {1, 0}) ASSERT_TRUE(staged.Place(b, 0, after[b]->checked).ok());
  staged.Seal();
  ExpectPlaced(staged, sizes, after);
  EXPECT_THAT(Ints(staged, "final_index"), IsEmpty());
  EXPECT_THAT(Floats(staged, "final_obs"), IsEmpty());
  EXPECT_THAT(Floats(staged, "episode_return"), IsEmpty());
  EXPECT_THAT(Ints(staged, "episode_length"), IsEmpty());
}

// Two segments of one slot, then compared with one fragment of twice the steps, row by row.
TEST(StagedColumns, SegmentsFollowEachOther) {
  const FragmentShape shape = MakeSampleShape({});
  // The first fragment's second step truncates environment 1; the second fragment's first terminates environment 0.
  const AdmittedFragments segments = MakeFragments(shape, {{{1, 1, true}}, {{0, 0, false}}});
  StagedColumns staged(shape, 1, 2);
  EXPECT_EQ(staged.steps(), 2 * shape.steps);
  EXPECT_EQ(staged.fragments(), 2);
  for (int64_t s : {0, 1}) ASSERT_TRUE(staged.Place(0, s, segments[s]->checked).ok());
  staged.Seal();
  const int64_t T = shape.steps, M = staged.columns(), O = shape.spec.obs_size();
  for (int64_t s : {0, 1}) {
    const FragmentValues& from = segments[s]->values;
    for (int64_t i = 0; i < T * M; ++i) ASSERT_EQ(Floats(staged, "reward")[s * T * M + i], from.floats("reward")[i]);
    for (int64_t i = 0; i < T * M * O; ++i) ASSERT_EQ(Floats(staged, "obs")[s * T * M * O + i], from.floats("obs")[i]);
  }
  for (int64_t i = 0; i < M * O; ++i) {
    ASSERT_EQ(Floats(staged, "obs")[2 * T * M * O + i], segments[1]->values.floats("obs")[T * M * O + i]);
  }
  const int64_t A = shape.spec.num_agents();
  for (int64_t a = 0; a < A; ++a) {
    EXPECT_EQ(Flags(staged, "truncated")[1 * M + 1 * A + a], 1);
    EXPECT_EQ(Flags(staged, "terminated")[T * M + a], 1);
    EXPECT_EQ(Ints(staged, "final_index")[a], 1 * M + 1 * A + a);
  }
  EXPECT_EQ(Floats(staged, "episode_return").size(), 2u);
}

// Slots 0 and 2 of three, in two segments, against a batch that only ever had two slots.
TEST(StagedColumns, KeepsSomeSlots) {
  for (const bool discrete : {false, true}) {
    const SampleSizes sizes = {.T = 2, .E = 2, .A = 3, .O = 3, .D = 2, .discrete = discrete, .G = 5, .P = 2};
    const FragmentShape shape = MakeSampleShape(sizes);
    const AdmittedFragments of_first = MakeFragments(shape, {{{0, 1, true}}, {{1, 0, true}}});
    const AdmittedFragments of_second = MakeFragments(shape, {{{0, 0, true}}, {{1, 1, true}}});
    const AdmittedFragments of_third = MakeFragments(shape, {{{1, 1, false}}, {{0, 0, true}, {1, 1, true}}});
    StagedColumns staged(shape, 3, 2), want(shape, 2, 2);
    for (int64_t segment : {0, 1}) {
      ASSERT_TRUE(staged.Place(0, segment, of_first[segment]->checked).ok());
      ASSERT_TRUE(staged.Place(1, segment, of_second[segment]->checked).ok());
      ASSERT_TRUE(staged.Place(2, segment, of_third[segment]->checked).ok());
      ASSERT_TRUE(want.Place(0, segment, of_first[segment]->checked).ok());
      ASSERT_TRUE(want.Place(1, segment, of_third[segment]->checked).ok());
    }
    staged.Keep({0, 2});
    staged.Seal();
    want.Seal();
    EXPECT_THAT(staged.slots(), ElementsAre(0, 2));
    EXPECT_EQ(staged.share_envs(), 4);
    EXPECT_EQ(staged.columns(), 12);
    EXPECT_EQ(staged.fragments(), 6);
    for (size_t i = 0; i < staged.all().size(); ++i) {
      EXPECT_EQ(staged.all()[i].bytes, want.all()[i].bytes) << staged.all()[i].field.name;
      EXPECT_EQ(staged.Dimensions(staged.all()[i]), want.Dimensions(want.all()[i]));
    }
    EXPECT_EQ(staged.samples(), 48);  // 4 steps of 12 columns, all of them alive.
  }
}

TEST(StagedColumns, KeepsAliveMasksAndWhatTeamsShare) {
  // One step of two teams of two, each with a state of two floats: agent 1 of the first has left before; agent 0 of the
  // second leaves in this step, which is also the last one of the time limit.
  const SampleSizes sizes = {.T = 1, .E = 2, .A = 2, .O = 1, .D = 1, .G = 2, .P = 1};
  const FragmentShape shape = MakeSampleShape(sizes);
  SampleFragment fragment = MakeSampleFragment(shape, 10, {{0, 1, true}});
  SetElement<uint8_t>(fragment.Find("active"), 1, 0);
  SetElement<uint8_t>(fragment.Find("agent_terminated"), 2, 1);
  const ReceivedFragment received(fragment);
  const Schema schema = MakeSchema(shape);
  CheckedFragment checked;
  ASSERT_TRUE(CheckFragment(received.frame(), schema, &checked).ok());
  StagedColumns staged(shape, 1);
  ASSERT_TRUE(staged.Place(0, 0, checked).ok());
  staged.Seal();
  EXPECT_THAT(Flags(staged, "active"), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(Flags(staged, "terminated"), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(Flags(staged, "truncated"), ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(staged.samples(), 3);
  EXPECT_THAT(Ints(staged, "final_index"), ElementsAre(2, 3));
  EXPECT_THAT(Floats(staged, "state"), ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));  // Two rows of two teams.
  EXPECT_THAT(Floats(staged, "final_state"), ElementsAre(10, 11));
  EXPECT_THAT(Floats(staged, "episode_metrics"), ElementsAre(10));
}

TEST(StagedColumns, KeepsNothingAndHasRoomForAllAgain) {
  const SampleSizes sizes = {.T = 2, .E = 1};
  const FragmentShape shape = MakeSampleShape(sizes);
  const AdmittedFragments fragments = MakeFragments(shape, {{{0, 0, true}}, {{1, 0, true}}});
  StagedColumns staged(shape, 2);
  ASSERT_TRUE(staged.Place(1, 0, fragments[1]->checked).ok());
  staged.Keep({});
  staged.Seal();
  EXPECT_EQ(staged.columns(), 0);
  EXPECT_EQ(staged.steps(), 2);
  EXPECT_THAT(Floats(staged, "obs"), IsEmpty());
  EXPECT_THAT(Ints(staged, "final_index"), IsEmpty());
  EXPECT_THAT(Floats(staged, "episode_return"), IsEmpty());
  staged.Reset();
  for (int64_t b : {0, 1}) ASSERT_TRUE(staged.Place(b, 0, fragments[b]->checked).ok());
  staged.Seal();
  ExpectPlaced(staged, sizes, fragments);
  ExpectFinalObservations(staged, sizes, fragments);
}

}  // namespace
}  // namespace skein
