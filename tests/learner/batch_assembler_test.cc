// SPDX-License-Identifier: Apache-2.0
#include "learner/batch_assembler.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/sample_batch.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Block {
  v1::TrajectoryBatch batch;
  CheckedBatch checked;
};

std::vector<Block> MakeBlocks(const BatchShape& shape, const std::vector<std::vector<SampleEnd>>& ends) {
  std::vector<Block> blocks(ends.size());
  for (size_t b = 0; b < ends.size(); ++b) {
    blocks[b].batch = MakeSampleBatch(shape, 1000.0f * static_cast<float>(b + 1), ends[b]);
    EXPECT_TRUE(CheckBatch(blocks[b].batch, shape, &blocks[b].checked).ok());
  }
  return blocks;
}

// Element by element: environment n of N is environment n % E of block n / E, agents are neighbouring columns.
void ExpectPlaced(const StagedBatch& staged, const SampleSizes& z, const std::vector<Block>& blocks) {
  const int64_t N = z.E * static_cast<int64_t>(blocks.size()), M = N * z.A, width = z.discrete ? 1 : z.D;
  ASSERT_EQ(staged.columns(), M);
  ASSERT_EQ(static_cast<int64_t>(staged.obs.size()), (z.T + 1) * M * z.O);
  ASSERT_EQ(static_cast<int64_t>(staged.action.size()), z.discrete ? 0 : z.T * M * width);
  ASSERT_EQ(static_cast<int64_t>(staged.action_index.size()), z.discrete ? z.T * M : 0);
  ASSERT_EQ(static_cast<int64_t>(staged.reward.size()), z.T * M);
  for (int64_t n = 0; n < N; ++n) {
    const CheckedBatch& from = blocks[n / z.E].checked;
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
void ExpectFinalObservations(const StagedBatch& staged, const SampleSizes& z, const std::vector<Block>& blocks) {
  const int64_t M = staged.columns();
  std::vector<int64_t> want_index;
  std::vector<float> want_obs;
  for (size_t b = 0; b < blocks.size(); ++b) {
    int64_t k = 0;
    for (int64_t t = 0; t < z.T; ++t) {
      for (int64_t e = 0; e < z.E; ++e) {
        if (!blocks[b].checked.truncated[t * z.E + e]) continue;
        for (int64_t a = 0; a < z.A; ++a) {
          want_index.push_back(t * M + (static_cast<int64_t>(b) * z.E + e) * z.A + a);
          for (int64_t o = 0; o < z.O; ++o) want_obs.push_back(blocks[b].checked.final_obs[(k * z.A + a) * z.O + o]);
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
      const BatchShape shape = MakeSampleShape(sizes);
      const std::vector<Block> blocks = MakeBlocks(shape, ends);
      StagedBatch staged(shape, 3);
      EXPECT_EQ(staged.steps(), 4);
      EXPECT_EQ(staged.num_envs(), 6);
      for (const int64_t b : {2, 0, 1}) staged.Place(b, blocks[b].checked);
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
  const BatchShape shape = MakeSampleShape(sizes);
  StagedBatch staged(shape, 2);
  const std::vector<Block> before = MakeBlocks(shape, {{{0, 0, true}}, {{1, 0, true}}});
  for (int64_t b : {0, 1}) staged.Place(b, before[b].checked);
  staged.Seal();
  EXPECT_THAT(staged.final_index, ElementsAre(0, 3));  // t * M + column with M = 2.
  const std::vector<Block> after = MakeBlocks(shape, {{}, {}});
  for (int64_t b : {1, 0}) staged.Place(b, after[b].checked);
  staged.Seal();
  ExpectPlaced(staged, sizes, after);
  EXPECT_THAT(staged.final_index, IsEmpty());
  EXPECT_THAT(staged.final_obs, IsEmpty());
  EXPECT_THAT(staged.episode_return, IsEmpty());
  EXPECT_THAT(staged.episode_length, IsEmpty());
}

}  // namespace
}  // namespace skein
