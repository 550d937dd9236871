// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <new>
#include <utility>

#include "learner/fit/fit_engine.h"
#include "learner/fit/saved_model.h"
#include "learner/sequence/fit_settings.h"
#include "tests/fit/text_file.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

// 600 sequences of a small grammar: a b c^n d, n in 0 .. 5; written once.
v1::FitConfig Config(std::vector<std::string> overrides = {}) {
  static const auto* const path = [] {
    const std::string folder = FreshFolder("trainer");
    std::string text;
    for (int i = 0; i < 600; ++i) {
      text += "1 2 ";
      for (int k = 0; k < i * 31 % 6; ++k) text += "3 ";
      text += i % 2 == 0 ? "4\n" : "5 4\n";
    }
    return new std::string(WriteText(folder + "/a", text));
  }();
  overrides.insert(overrides.begin(), {"data.files=" + *path, "model.embedding=16", "model.hidden=16",
                                       "train.batch_size=64", "train.lr=0.01", "train.epochs=4", "train.parts=2"});
  const auto config = LoadFitConfig("", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

const SequenceStore& Store() {
  static const auto* const store =
      SequenceStore::Open(Config(), FreshFolder("trainer-store"), [](double) { return true; })->release();
  return *store;
}

std::unique_ptr<FitTrainer> Make(const v1::FitConfig& config, Collective* collective = nullptr) {
  auto trainer = FitTrainer::Make(config, Store().vocabulary(), collective, 0);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return *std::move(trainer);
}

// Trains from where `trainer` is to the end of epoch `until`, or until `steps` more steps are done.
void Train(const v1::FitConfig& config, FitTrainer* trainer, uint64_t until, uint64_t steps = 1000000) {
  while (trainer->progress().epoch < until) {
    BatchStream::Options options;
    options.order = {config.seed(), trainer->progress().epoch, 32768, config.train().batch_size(), true};
    options.parts = config.train().parts();
    options.first_batch = trainer->progress().next_batch;
    BatchStream stream(&Store(), options);
    for (;;) {
      auto batch = stream.Next();
      ASSERT_TRUE(batch.ok());
      if (*batch == nullptr) break;
      const auto step = trainer->Step(**batch, 0.01, false);
      ASSERT_TRUE(step.ok()) << step.status();
      if (--steps == 0) return;
    }
    EXPECT_EQ(trainer->progress().epoch_sequences, Store().counts().train_sequences);
    const auto held_out = trainer->Loss(Store(), Part::kHeldOut);
    ASSERT_TRUE(held_out.ok()) << held_out.status();
    trainer->EndEpoch(*held_out);
  }
}

std::string Digest(const FitTrainer& trainer) { return CheckpointDigest(trainer.Save(Store().digest(), nullptr)); }

TEST(FitTrainer, LearnsAGrammar) {
  const v1::FitConfig config = Config();
  const auto trainer = Make(config);
  const double before = *trainer->Loss(Store(), Part::kHeldOut);
  Train(config, trainer.get(), 4);
  EXPECT_GT(before, 1.9);  // About log 8.
  EXPECT_LT(trainer->progress().held_out_loss, 0.7 * before);
  EXPECT_EQ(trainer->progress().sequences, 4 * Store().counts().train_sequences);
  EXPECT_TRUE(trainer->progress().finished);
}

TEST(FitTrainer, GoesOnInMidEpochToTheBit) {
  const v1::FitConfig config = Config();
  const auto whole = Make(config), first = Make(config), second = Make(config);
  Train(config, whole.get(), 2);
  Train(config, first.get(), 2, 11);  // In the second epoch: 480 sequences make 8 steps.
  EXPECT_EQ(first->progress().epoch, 1);
  EXPECT_GT(first->progress().next_batch, 0);
  ASSERT_TRUE(second->Restore(first->Save(Store().digest(), nullptr), Store().digest()).ok());
  Train(config, second.get(), 2);
  EXPECT_EQ(Digest(*second), Digest(*whole));
}

TEST(FitTrainer, TrainsTheSameBitsWithOneRankAndWithTwo) {
  const v1::FitConfig config = Config();
  const auto alone = Make(config);
  Train(config, alone.get(), 2);
  std::vector<std::string> digests(2);
  RunRanks(2, [&](Collective* collective) {
    const auto trainer = Make(config, collective);
    Train(config, trainer.get(), 2);
    EXPECT_EQ(trainer->progress().sequences, 2 * Store().counts().train_sequences);
    digests[static_cast<size_t>(collective->rank())] = Digest(*trainer);
  });
  EXPECT_EQ(digests[0], Digest(*alone));
  EXPECT_EQ(digests[1], digests[0]);
}

TEST(FitTrainer, WantsPartsForAllRanks) {
  const v1::FitConfig config = Config({"train.parts=3"});
  RunRanks(2, [&](Collective* collective) {
    const auto trainer = FitTrainer::Make(config, Store().vocabulary(), collective, 0);
    EXPECT_THAT(std::string(trainer.status().message()),
                HasSubstr("train.parts (3) must be a multiple of the number of ranks (2)"));
    // Neither leaves before the other has come.
    EXPECT_TRUE(collective->Gather(torch::tensor({1}, torch::kInt64)).ok());
  });
}

TEST(FitTrainer, RefusesAPolicysCheckpointAndOtherData) {
  const auto trainer = Make(Config());
  Checkpoint checkpoint = trainer->Save(Store().digest(), nullptr);
  const absl::Status other = trainer->Restore(checkpoint, "0123456789abcdef");
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  checkpoint.env_id = "CartPole-v1";
  EXPECT_EQ(trainer->Restore(checkpoint, Store().digest()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ReadSavedModel(checkpoint, "folder").status().message()),
              HasSubstr("folder is a checkpoint of a policy for CartPole-v1"));
}

TEST(FitTrainer, GoesOnOnlyWithTheSettingsThatItBeganWith) {
  const auto trainer = Make(Config());
  const Checkpoint checkpoint = trainer->Save(Store().digest(), nullptr);
  for (const auto& [setting, message] :
       {std::pair{"seed=2", "seed 1, got 2; set it to 1"},
        {"train.batch_size=32", "train.batch_size 64, got 32"},
        {"data.window=16", "data.window 32768, got 16"},
        {"train.parts=4", "train.parts 2, got 4; set it to 2 and take a number of ranks"},
        {"model.hidden=32", "model.hidden 16, got 32"}}) {
    const absl::Status refused = Make(Config({setting}))->Restore(checkpoint, Store().digest());
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(message));
  }
  EXPECT_TRUE(Make(Config({"train.epochs=9", "train.lr=0.1"}))->Restore(checkpoint, Store().digest()).ok());
}

TEST(FitTrainer, CountsTheSequencesThatRanksComputed) {
  const v1::FitConfig config = Config();
  BatchStream::Options options;
  options.order.batch_size = 64;
  options.parts = 2;
  const auto batch = *BatchStream(&Store(), options).Next();
  const auto whole = Make(config);
  EXPECT_EQ(whole->Step(*batch, 0.01, false)->sequences, 64);
  SequenceBatch half = *batch;  // As if the rows of the second part were nobody's.
  half.parts[2] = half.parts[1];
  const auto step = Make(config)->Step(half, 0.01, false);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->sequences, SequencesOf(*batch, 0, batch->parts[1]));
  EXPECT_LT(step->sequences, 64);
}

TEST(PartsFor, AreAsManyAsRanksUnlessTheyAreSet) {
  const v1::FitConfig set = Config({"train.parts=6"}), open = Config({"train.parts=0"});
  EXPECT_EQ(PartsFor(set.train(), 3), 6);
  for (const auto& [ranks, parts] : {std::pair{1, 2}, {2, 2}, {3, 3}, {8, 8}}) {
    EXPECT_EQ(PartsFor(open.train(), static_cast<uint32_t>(ranks)), parts);
  }
}

TEST(FitTrainer, StopsEarlyAndKeepsTheBest) {
  const v1::FitConfig config = Config({"train.patience=2", "train.epochs=100"});
  const auto trainer = Make(config);
  trainer->EndEpoch(1.0);
  trainer->EndEpoch(0.5);
  trainer->EndEpoch(0.6);
  EXPECT_FALSE(trainer->progress().finished);
  trainer->EndEpoch(0.5);
  EXPECT_TRUE(trainer->progress().finished);
  EXPECT_EQ(trainer->progress().best_epoch, 2);
}

// Both engines of one model.
struct Engines {
  v1::FitConfig config;
  NetLayout layout;
  std::vector<float> values;
  std::vector<torch::Tensor> views;
  std::unique_ptr<FlatAdam> adam;
  std::unique_ptr<FitEngine> threads, torch;
  std::unique_ptr<SequenceBatch> batch;

  explicit Engines(const v1::FitConfig& given)
      : config(given), layout(Store().vocabulary().classes(), 16, 16, 2), values(static_cast<size_t>(layout.size)) {
    InitializeNet(layout, 1, values.data());
    for (const NetLayout::Parameter& p : layout.parameters()) {
      views.push_back(torch::from_blob(values.data() + p.offset, {p.rows, p.columns}).clone().requires_grad_(true));
    }
    adam = std::make_unique<FlatAdam>(views, 1e-8);
    threads = MakeThreadEngine(config.train(), &layout, config.train().parts(), adam->parameters());
    torch = MakeTorchEngine(config.train(), &layout, views);
    BatchStream::Options options;
    options.order.batch_size = 200;
    options.parts = config.train().parts();
    batch = *BatchStream(&Store(), options).Next();
  }
  std::pair<double, torch::Tensor> Gradient(FitEngine* engine) {
    std::vector<double> losses;
    const absl::Status status = engine->Gradient(*batch, {0, config.train().parts()}, 0.01, adam->gradient(), &losses);
    EXPECT_TRUE(status.ok()) << status;
    double loss = 0;
    for (const double part : losses) loss += part;
    return {loss, adam->gradient().clone()};
  }
};

TEST(FitEngine, HasOneGradientByThreadsAndByTorch) {
  Engines engines(Config());
  const auto [loss, gradient] = engines.Gradient(engines.threads.get());
  const auto [torch_loss, torch_gradient] = engines.Gradient(engines.torch.get());
  EXPECT_NEAR(loss, torch_loss, 1e-4 * loss);
  EXPECT_GT(gradient.norm().item<double>(), 0.01);
  EXPECT_LT((gradient - torch_gradient).norm().item<double>(), 1e-5 * gradient.norm().item<double>());
}

TEST(FitEngine, ComputesInBfloat16WithLessPrecision) {
  Engines engines(Config());
  const auto [loss, gradient] = engines.Gradient(engines.threads.get());
  Engines rough(Config({"train.precision=bf16"}));
  const auto [rough_loss, rough_gradient] = rough.Gradient(rough.torch.get());
  EXPECT_NEAR(loss, rough_loss, 0.02 * loss);
  EXPECT_LT((gradient - rough_gradient).norm().item<double>(), 0.05 * gradient.norm().item<double>());
}

TEST(FitEngine, HalvesTheMicroBatchWhenMemoryIsShort) {
  Engines engines(Config());
  const auto [loss, gradient] = engines.Gradient(engines.threads.get());
  for (FitEngine* engine : {engines.threads.get(), engines.torch.get()}) {
    engine->SetMemoryProbe([](int64_t rows) {
      if (rows > 2) throw std::bad_alloc();
    });
    const auto [again_loss, again] = engines.Gradient(engine);
    EXPECT_GT(engine->out_of_memory(), 0);
    EXPECT_NEAR(again_loss, loss, 1e-4 * loss);
    EXPECT_LT((gradient - again).norm().item<double>(), 1e-5 * gradient.norm().item<double>());
    engine->SetMemoryProbe([](int64_t) { throw std::bad_alloc(); });
    std::vector<double> losses;
    EXPECT_EQ(engine->Loss(*engines.batch, {0, 2}, &losses).code(), absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace
}  // namespace skein
