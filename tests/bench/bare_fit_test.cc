// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bench/fit_data.h"
#include "bench/fit_steps.h"
#include "learner/sequence/fit_settings.h"
#include "tests/fit/text_file.h"

namespace skein {
namespace {

// 64 sequences of 1 to 7 keys, some of them equal, the longest cut off.
std::unique_ptr<FitData> Data() {
  std::string text;
  for (int i = 0; i < 64; ++i) {
    for (int t = 0; t <= i % 8; ++t) text += std::to_string((i * 5 + t * t) % 6) + " ";
    text += "\n";
  }
  const std::string path = WriteText(FreshFolder("bench-bare") + "/a", text);
  const auto config =
      LoadFitConfig("", {"data.files=" + path, "data.holdout=0", "data.max_length=7", "data.too_long=cut",
                         "data.window=64", "model.embedding=16", "model.hidden=16", "train.batch_size=24",
                         "train.lr=0.02", "train.max_grad_norm=0.1", "train.device=cpu"});
  EXPECT_TRUE(config.ok()) << config.status();
  auto data = FitData::Open(*config, 1, [] { return false; });
  EXPECT_TRUE(data.ok()) << data.status();
  return *std::move(data);
}

TEST(BareFit, TrainsAsFitTrainerDoes) {
  const auto data = Data();
  const Vocabulary& vocabulary = data->store().vocabulary();
  const auto ours = FitSteps::Make(data->config(), vocabulary);
  const auto bare = BareFit::Make(data->config(), vocabulary.classes(), 1);
  ASSERT_TRUE(ours.ok()) << ours.status();
  ASSERT_TRUE(bare.ok()) << bare.status();
  BatchLoop batches(data->config(), &data->store());
  double first = 0, last = 0;
  for (size_t i = 0; i < 12; ++i) {
    const auto batch = batches.Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_TRUE((*bare)->Add(**batch).ok());
    EXPECT_EQ((*bare)->tokens(i), (*batch)->steps);
    const auto our_loss = (*ours)->Step(**batch), bare_loss = (*bare)->Step(i);
    ASSERT_TRUE(our_loss.ok()) << our_loss.status();
    ASSERT_TRUE(bare_loss.ok()) << bare_loss.status();
    EXPECT_NEAR(*our_loss, *bare_loss, i == 0 ? 1e-5 : 2e-3) << "step " << i;
    (i == 0 ? first : last) = *bare_loss;
  }
  EXPECT_EQ((*bare)->batches(), 12u);
  EXPECT_LT(last, first);
}

TEST(BareFit, SaysHowMuchItPads) {
  const auto data = Data();
  const auto bare = BareFit::Make(data->config(), data->store().vocabulary().classes(), 1);
  ASSERT_TRUE(bare.ok()) << bare.status();
  SequenceBatch batch;
  batch.rows.classes = {2, 3, 2};
  batch.rows.begins = {0, 2, 3};
  batch.rows.cut = {0, 0};
  batch.weights = {1, 2};
  batch.sequences = 3;
  batch.steps = 3 + 2 * 2;
  ASSERT_TRUE((*bare)->Add(batch).ok());
  EXPECT_EQ((*bare)->tokens(0), 7u);
  EXPECT_DOUBLE_EQ((*bare)->padded_share(0), 1 - 7.0 / 9);  // Three rows of three.
  EXPECT_EQ((*bare)->device(), "cpu");
}

TEST(BareFit, NamesADeviceThatIsNotThere) {
  const auto data = Data();
  v1::FitConfig config = data->config();
  config.mutable_train()->set_device("cuda:99");
  const auto bare = BareFit::Make(config, 8, 1);
  EXPECT_THAT(std::string(bare.status().message()), testing::HasSubstr("cuda:99"));
}

}  // namespace
}  // namespace skein
