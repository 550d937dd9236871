// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/batch_assembler.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_batch.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Block {
  Block(const FragmentShape& shape, float offset, const std::vector<SampleEnd>& ends)
      : batch(MakeSampleBatch(shape, offset, ends)), received(batch, 50), values(batch, shape) {
    EXPECT_TRUE(CheckBatch(received.wire(), shape, &checked).ok());
  }
  const v1::TrajectoryBatch batch;
  const ReceivedBatch received;
  const BatchValues values;
  CheckedBatch checked;
};
using Blocks = std::vector<std::unique_ptr<Block>>;

Blocks MakeBlocks(const FragmentShape& shape, const std::vector<std::vector<SampleEnd>>& ends) {
  Blocks blocks;
  for (size_t b = 0; b < ends.size(); ++b) {
    blocks.push_back(std::make_unique<Block>(shape, 1000.0f * static_cast<float>(b + 1), ends[b]));
  }
  return blocks;
}

// Element by element: environment n of N is environment n % E of block n / E, agents are neighbouring columns.
void ExpectPlaced(const StagedBatch& staged, const SampleSizes& z, const Blocks& blocks) {
  const int64_t N = z.E * static_cast<int64_t>(blocks.size()), M = N * z.A, width = z.discrete ? 1 : z.D;
  ASSERT_EQ(staged.columns(), M);
  ASSERT_EQ(static_cast<int64_t>(staged.obs.size()), (z.T + 1) * M * z.O);
  ASSERT_EQ(static_cast<int64_t>(staged.action.size()), z.discrete ? 0 : z.T * M * width);
  ASSERT_EQ(static_cast<int64_t>(staged.action_index.size()), z.discrete ? z.T * M : 0);
  ASSERT_EQ(static_cast<int64_t>(staged.reward.size()), z.T * M);
  for (int64_t n = 0; n < N; ++n) {
    const BatchValues& from = blocks[n / z.E]->values;
    const int64_t e = n % z.E;
    for (int64_t a = 0; a < z.A; ++a) {
      const int64_t column = n * z.A + a;
      for (int64_t t = 0; t <= z.T; ++t) {
        for (int64_t o = 0; o < z.O; ++o) {
          ASSERT_EQ(staged.obs[(t * M + column) * z.O + o], from.obs[((t * z.E + e) * z.A + a) * z.O + o]);
        }
      }
      for (int64_t t = 0; t < z.T; ++t) {
        const int64_t to = t * M + column, source = (t * z.E + e) * z.A + a;
        for (int64_t d = 0; d < width; ++d) {
          if (z.discrete) {
            ASSERT_EQ(staged.action_index[to], from.action_index[source]);
          } else {
            ASSERT_EQ(staged.action[to * width + d], from.action[source * width + d]);
          }
        }
        ASSERT_EQ(staged.log_prob[to], from.log_prob[source]);
        ASSERT_EQ(staged.reward[to], from.reward[source]);
        ASSERT_EQ(staged.terminated[to], from.terminated[t * z.E + e]);
        ASSERT_EQ(staged.truncated[to], from.truncated[t * z.E + e]);
      }
    }
  }
}

// Every truncated column has its own row of the final observations and nothing else has.
void ExpectFinalObservations(const StagedBatch& staged, const SampleSizes& z, const Blocks& blocks) {
  const int64_t M = staged.columns();
  std::vector<int64_t> want_index;
  std::vector<float> want_obs;
  for (size_t b = 0; b < blocks.size(); ++b) {
    int64_t k = 0;
    for (int64_t t = 0; t < z.T; ++t) {
      for (int64_t e = 0; e < z.E; ++e) {
        if (!blocks[b]->checked.truncated[t * z.E + e]) continue;
        for (int64_t a = 0; a < z.A; ++a) {
          want_index.push_back(t * M + (static_cast<int64_t>(b) * z.E + e) * z.A + a);
          for (int64_t o = 0; o < z.O; ++o) want_obs.push_back(blocks[b]->checked.final_obs[(k * z.A + a) * z.O + o]);
        }
        ++k;
      }
    }
  }
  EXPECT_EQ(staged.final_index, want_index);
  EXPECT_EQ(staged.final_obs, want_obs);
}

TEST(BatchAssembler, PlacesWhatALiteralLoopPlaces) {
  const std::vector<std::vector<SampleEnd>> ends = {
      {{0, 1, true}, {2, 0, false}, {3, 0, true}}, {}, {{1, 0, false}, {1, 1, true}}};
  for (const bool discrete : {false, true}) {
    for (const int64_t agents : {1, 3}) {
      const SampleSizes sizes = {.T = 4, .E = 2, .A = agents, .O = 3, .D = 2, .discrete = discrete};
      const FragmentShape shape = MakeSampleShape(sizes);
      const Blocks blocks = MakeBlocks(shape, ends);
      StagedBatch staged(shape, 3);
      EXPECT_EQ(staged.steps(), 4);
      EXPECT_EQ(staged.num_envs(), 6);
      for (const int64_t b : {2, 0, 1}) ASSERT_TRUE(staged.Place(b, 0, blocks[b]->checked).ok());
      staged.Seal();
      ExpectPlaced(staged, sizes, blocks);
      ExpectFinalObservations(staged, sizes, blocks);
      // Offset 1000 (b + 1) plus the episode's place in its block.
      EXPECT_THAT(staged.episode_return, ElementsAre(1000, 1001, 1002, 3000, 3001));
      EXPECT_THAT(staged.episode_length, ElementsAre(10, 11, 12, 10, 11));
    }
  }
}

TEST(BatchAssembler, ReusedBuffersForgetTheIterationBefore) {
  const SampleSizes sizes = {.T = 2, .E = 1};
  const FragmentShape shape = MakeSampleShape(sizes);
  StagedBatch staged(shape, 2);
  const Blocks before = MakeBlocks(shape, {{{0, 0, true}}, {{1, 0, true}}});
  for (int64_t b : {0, 1}) ASSERT_TRUE(staged.Place(b, 0, before[b]->checked).ok());
  staged.Seal();
  EXPECT_THAT(staged.final_index, ElementsAre(0, 3));  // t * M + column with M = 2.
  const Blocks after = MakeBlocks(shape, {{}, {}});
  for (int64_t b : {1, 0}) ASSERT_TRUE(staged.Place(b, 0, after[b]->checked).ok());
  staged.Seal();
  ExpectPlaced(staged, sizes, after);
  EXPECT_THAT(staged.final_index, IsEmpty());
  EXPECT_THAT(staged.final_obs, IsEmpty());
  EXPECT_THAT(staged.episode_return, IsEmpty());
  EXPECT_THAT(staged.episode_length, IsEmpty());
}

// Two segments of one slot, then compared with one fragment of twice the steps, row by row.
TEST(StagedBatch, SegmentsFollowEachOther) {
  const FragmentShape shape = MakeSampleShape({});
  // The first fragment's second step truncates environment 1; the second fragment's first terminates environment 0.
  const Blocks segments = MakeBlocks(shape, {{{1, 1, true}}, {{0, 0, false}}});
  StagedBatch staged(shape, 1, 2);
  EXPECT_EQ(staged.steps(), 2 * shape.steps);
  EXPECT_EQ(staged.fragments(), 2);
  for (int64_t s : {0, 1}) ASSERT_TRUE(staged.Place(0, s, segments[s]->checked).ok());
  staged.Seal();
  const int64_t T = shape.steps, M = staged.columns(), O = shape.spec.obs_size();
  for (int64_t s : {0, 1}) {
    const BatchValues& from = segments[s]->values;
    for (int64_t i = 0; i < T * M; ++i) ASSERT_EQ(staged.reward[s * T * M + i], from.reward[i]);
    for (int64_t i = 0; i < T * M * O; ++i) ASSERT_EQ(staged.obs[s * T * M * O + i], from.obs[i]);
  }
  for (int64_t i = 0; i < M * O; ++i) {
    ASSERT_EQ(staged.obs[2 * T * M * O + i], segments[1]->values.obs[T * M * O + i]);
  }
  const int64_t A = shape.spec.num_agents();
  for (int64_t a = 0; a < A; ++a) {
    EXPECT_EQ(staged.truncated[1 * M + 1 * A + a], 1);
    EXPECT_EQ(staged.terminated[T * M + a], 1);
    EXPECT_EQ(staged.final_index[a], 1 * M + 1 * A + a);
  }
  EXPECT_EQ(staged.episode_return.size(), 2u);
}

// Slots 0 and 2 of three, in two segments, against a batch that only ever had two slots.
TEST(StagedBatch, KeepsSomeSlots) {
  for (const bool discrete : {false, true}) {
    const SampleSizes sizes = {.T = 2, .E = 2, .A = 3, .O = 3, .D = 2, .discrete = discrete, .G = 5, .P = 2};
    const FragmentShape shape = MakeSampleShape(sizes);
    const Blocks of_first = MakeBlocks(shape, {{{0, 1, true}}, {{1, 0, true}}});
    const Blocks of_second = MakeBlocks(shape, {{{0, 0, true}}, {{1, 1, true}}});
    const Blocks of_third = MakeBlocks(shape, {{{1, 1, false}}, {{0, 0, true}, {1, 1, true}}});
    StagedBatch staged(shape, 3, 2), want(shape, 2, 2);
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
    EXPECT_EQ(staged.num_envs(), 4);
    EXPECT_EQ(staged.columns(), 12);
    EXPECT_EQ(staged.fragments(), 6);
    EXPECT_EQ(staged.obs, want.obs);
    EXPECT_EQ(staged.action, want.action);
    EXPECT_EQ(staged.action_index, want.action_index);
    EXPECT_EQ(staged.log_prob, want.log_prob);
    EXPECT_EQ(staged.reward, want.reward);
    EXPECT_EQ(staged.terminated, want.terminated);
    EXPECT_EQ(staged.truncated, want.truncated);
    EXPECT_EQ(staged.final_obs, want.final_obs);
    EXPECT_EQ(staged.final_index, want.final_index);
    EXPECT_EQ(staged.episode_return, want.episode_return);
    EXPECT_EQ(staged.episode_length, want.episode_length);
    EXPECT_EQ(staged.active, want.active);
    EXPECT_EQ(staged.state, want.state);
    EXPECT_EQ(staged.final_state, want.final_state);
    EXPECT_EQ(staged.episode_metrics, want.episode_metrics);
    EXPECT_EQ(staged.samples(), 48);  // 4 steps of 12 columns, all of whom took part.
  }
}

TEST(StagedBatch, KeepsWhoTookPartAndWhatTheyShare) {
  // One step of two teams of two, each with a state of two floats: agent 1 of the first has left before; agent 0 of the
  // second leaves in this step, which is also the last one of the time limit.
  const SampleSizes sizes = {.T = 1, .E = 2, .A = 2, .O = 1, .D = 1, .G = 2, .P = 1};
  const FragmentShape shape = MakeSampleShape(sizes);
  v1::TrajectoryBatch batch = MakeSampleBatch(shape, 10, {{0, 1, true}});
  SetElement<uint8_t>(FindTensor(&batch, "active"), 1, 0);
  SetElement<uint8_t>(FindTensor(&batch, "agent_terminated"), 2, 1);
  const ReceivedBatch received(batch);
  CheckedBatch checked;
  ASSERT_TRUE(CheckBatch(received.wire(), shape, &checked).ok());
  StagedBatch staged(shape, 1);
  ASSERT_TRUE(staged.Place(0, 0, checked).ok());
  staged.Seal();
  EXPECT_THAT(staged.active, ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(staged.terminated, ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(staged.truncated, ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(staged.samples(), 3);
  EXPECT_THAT(staged.final_index, ElementsAre(2, 3));
  EXPECT_THAT(staged.state, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));  // Two rows of two teams.
  EXPECT_THAT(staged.final_state, ElementsAre(10, 11));
  EXPECT_THAT(staged.episode_metrics, ElementsAre(10));
}

TEST(StagedBatch, KeepsNothingAndHasRoomForAllAgain) {
  const SampleSizes sizes = {.T = 2, .E = 1};
  const FragmentShape shape = MakeSampleShape(sizes);
  const Blocks blocks = MakeBlocks(shape, {{{0, 0, true}}, {{1, 0, true}}});
  StagedBatch staged(shape, 2);
  ASSERT_TRUE(staged.Place(1, 0, blocks[1]->checked).ok());
  staged.Keep({});
  staged.Seal();
  EXPECT_EQ(staged.columns(), 0);
  EXPECT_EQ(staged.steps(), 2);
  EXPECT_THAT(staged.obs, IsEmpty());
  EXPECT_THAT(staged.final_index, IsEmpty());
  EXPECT_THAT(staged.episode_return, IsEmpty());
  staged.Reset();
  for (int64_t b : {0, 1}) ASSERT_TRUE(staged.Place(b, 0, blocks[b]->checked).ok());
  staged.Seal();
  ExpectPlaced(staged, sizes, blocks);
  ExpectFinalObservations(staged, sizes, blocks);
}

}  // namespace
}  // namespace skein
