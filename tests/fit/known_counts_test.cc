// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/known_counts.h"

#include <gtest/gtest.h>

#include <map>

#include "learner/sequence/detection_choice.h"
#include "learner/sequence/fit_settings.h"
#include "tests/fit/text_file.h"

namespace skein {
namespace {

using Classes = std::vector<uint32_t>;

TEST(KnownCounts, KnowsASequenceByHowOftenItHasEachKey) {
  KnownCounts known;
  known.Add(Classes{2, 3, 3, 4}, false);
  known.Add(Classes{3, 4, 3, 2}, false);
  EXPECT_EQ(known.size(), 1);
  EXPECT_TRUE(known.Contains(Classes{4, 3, 2, 3}, false));
  EXPECT_FALSE(known.Contains(Classes{2, 3, 4}, false));
  EXPECT_FALSE(known.Contains(Classes{2, 3, 3, 3, 4}, false));
  EXPECT_FALSE(known.Contains(Classes{2, 2, 3, 4}, false));
  EXPECT_FALSE(known.Contains(Classes{2, 3, 3, 4}, true)) << "one that was cut off";
}

TEST(KnownCounts, NeverKnowsASequenceWithAnUnknownKey) {
  KnownCounts known;
  known.Add(Classes{2, Vocabulary::kUnknown}, false);
  EXPECT_EQ(known.size(), 0);
  EXPECT_FALSE(known.Contains(Classes{2, Vocabulary::kUnknown}, false));
}

TEST(KnownCounts, AreTheSameAfterTheyWereStored) {
  KnownCounts one, two;
  for (uint32_t i = 2; i < 50; ++i) one.Add(Classes{i, 2}, false);
  for (uint32_t i = 49; i >= 2; --i) two.Add(Classes{2, i}, false);
  EXPECT_EQ(one.Sorted(), two.Sorted());
  const KnownCounts again(one.Sorted());
  EXPECT_EQ(again.size(), 48);
  EXPECT_TRUE(again.Contains(Classes{7, 2}, false));
  EXPECT_FALSE(again.Contains(Classes{7, 7}, false));
}

bool GoOn(const char* /*what*/, double /*share*/) { return true; }

// What is chosen from `all` sequences, of which `odd` have counts of their own; the net has not been trained.
absl::StatusOr<DetectionChoice> ChooseFrom(int all, int odd, bool known_counts, uint32_t threads,
                                           const ChoiceProgress& progress, uint64_t* held = nullptr) {
  std::string text;
  for (int i = 0; i < all; ++i) {
    text += "1 2 3 ";
    for (int k = 0; k < (i < odd ? i + 1 : 0); ++k) text += "2 ";
    text += "\n";
  }
  const std::string folder = FreshFolder("known-counts");
  auto config =
      *LoadFitConfig("", {"data.files=" + WriteText(folder + "/a", text), "data.holdout=0.4", "detect.false_alarms=0"});
  const auto store = *SequenceStore::Open(config, folder + "/data", [](double) { return true; });
  if (held != nullptr) *held = store->counts().held_sequences;
  const NetLayout layout(store->vocabulary().classes(), 16, 16, 1);
  std::vector<float> values(static_cast<size_t>(layout.size));
  InitializeNet(layout, 1, values.data());
  NetWeights weights(&layout);
  weights.Update(values.data());
  config.mutable_detect()->set_known_counts(known_counts);
  return ChooseDetection(config.detect(), *store, layout, weights, threads, progress);
}

DetectionChoice Choose(int odd, bool known_counts, uint64_t* held = nullptr) {
  return *ChooseFrom(500, odd, known_counts, 1, GoOn, held);
}

TEST(ChooseDetection, ChoosesTheLimitFromHeldOutSequencesWithOtherCounts) {
  uint64_t held = 0;
  const DetectionChoice choice = Choose(20, true, &held);
  EXPECT_EQ(choice.known.size(), 21) << "held-out ones, too";
  EXPECT_GT(choice.new_counts, 0);
  EXPECT_LE(choice.new_counts, 20);
  EXPECT_EQ(choice.others.sequences, held) << "the known ones count as judged";
  EXPECT_EQ(&choice.limits(), &choice.others.limits);
  EXPECT_GE(choice.others.limits.probability, choice.alone.limits.probability);
  EXPECT_LE(choice.others.limits.top_g, choice.alone.limits.top_g);
  EXPECT_LT(choice.others.limits.probability, 1);
}

TEST(ChooseDetection, FindsAllOtherCountsAnomalousIfNoHeldOutSequenceHasSome) {
  const DetectionChoice choice = Choose(0, true);
  EXPECT_EQ(choice.known.size(), 1);
  EXPECT_EQ(choice.new_counts, 0);
  EXPECT_EQ(choice.others.limits.probability, 1);
  EXPECT_EQ(choice.others.limits.top_g, 1);
  EXPECT_LT(choice.alone.limits.probability, 1);
}

TEST(ChooseDetection, IsOfTheModelAloneUnlessCountsAreWanted) {
  const DetectionChoice choice = Choose(20, false), with = Choose(20, true);
  EXPECT_FALSE(choice.has_known);
  EXPECT_EQ(choice.known.size(), 0);
  EXPECT_EQ(&choice.limits(), &choice.alone.limits);
  EXPECT_EQ(choice.alone.limits.probability, with.alone.limits.probability);
}

TEST(ChooseDetection, ChoosesTheSameOnAnyNumberOfThreads) {
  const auto one = ChooseFrom(8000, 90, true, 1, GoOn);
  ASSERT_TRUE(one.ok()) << one.status();
  for (const uint32_t threads : {2, 3, 16}) {
    const auto more = ChooseFrom(8000, 90, true, threads, GoOn);
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_EQ(more->alone.limits.probability, one->alone.limits.probability);
    EXPECT_EQ(more->alone.limits.top_g, one->alone.limits.top_g);
    EXPECT_EQ(more->others.limits.probability, one->others.limits.probability);
    EXPECT_EQ(more->others.limits.top_g, one->others.limits.top_g);
    EXPECT_EQ(more->alone.sequences, one->alone.sequences);
    EXPECT_EQ(more->new_counts, one->new_counts);
    EXPECT_EQ(more->known.Sorted(), one->known.Sorted());
  }
}

TEST(ChooseDetection, TellsHowFarItIsAndEndsWhenItIsTold) {
  std::vector<std::string> told;
  std::map<std::string, double> shares;
  const auto tell = [&](const char* what, double share) {
    if (told.empty() || told.back() != what) told.push_back(what);
    EXPECT_GE(share, shares[what]);
    shares[what] = share;
    return true;
  };
  ASSERT_TRUE(ChooseFrom(5000, 9, true, 1, tell).ok());
  EXPECT_EQ(told, (std::vector<std::string>{"count vectors of the training part", "limits from held-out sequences",
                                            "count vectors of the held-out part"}));
  for (const std::string& what : told) {
    EXPECT_EQ(shares[what], 1) << what;
    const auto stopped = ChooseFrom(5000, 9, true, 3, [&](const char* now, double share) {
      return now != what || share == 0;  // Within it.
    });
    EXPECT_TRUE(absl::IsCancelled(stopped.status())) << stopped.status();
  }
}

}  // namespace
}  // namespace skein
