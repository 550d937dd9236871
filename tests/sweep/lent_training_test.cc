// SPDX-License-Identifier: Apache-2.0
// Both sides in one process, with a stand-in for skein.
#include "sweep/lent_training.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "sweep/lent_slots.h"
#include "sweep/slot_lender.h"
#include "tests/cli/scratch_folder.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LentTrainingTest : public testing::Test {
 protected:
  LentTrainingTest() { std::filesystem::create_directories(folder_.path() + "/log"); }

  // `script`: what skein does.
  std::unique_ptr<SlotLender> Lend(const std::string& script, uint32_t slots = 1) {
    folder_.WriteScript("skein", script);
    auto lender = SlotLender::Lend(
        {.folder = folder_.path(), .program_folder = folder_.path(), .name = "node-1", .slots = slots});
    EXPECT_TRUE(lender.ok()) << lender.status();
    return *std::move(lender);
  }

  std::unique_ptr<LentTraining> Begin(const std::string& slot = "node-1-0") {
    auto training = LentTraining::Begin(slot, {.id = absl::StrCat("id-", ++orders_),
                                               .name = "trial-00000-s0",
                                               .cwd = folder_.path(),
                                               .folder = folder_.path(),
                                               .arguments = {"train", "--seed", "7"},
                                               .log_path = "log/trial-00000-s0.log"});
    EXPECT_TRUE(training.ok()) << training.status();
    return *std::move(training);
  }

  int CodeOf(LentTraining* training, SlotLender* lender) {
    std::optional<int> code;
    EXPECT_TRUE(WaitUntil([&] {
      EXPECT_EQ(lender->Step(), absl::OkStatus());
      return (code = training->Poll()).has_value();
    }));
    return code.value_or(-1);
  }

  // Until the stand-in has written its second line.
  void WaitForStart(SlotLender* lender) {
    EXPECT_TRUE(WaitUntil([&] {
      EXPECT_EQ(lender->Step(), absl::OkStatus());
      return folder_.Read("seen") == "begun\n";
    }));
  }

  const std::string endless_ =
      "cd \"$(dirname \"$0\")\"; trap 'echo ended >>seen; exit 0' TERM; echo begun >>seen; while :; do sleep 0.05; "
      "done\n";
  const ScratchFolder folder_;
  int orders_ = 0;
};

TEST_F(LentTrainingTest, RunsAtTheWorkerAndEndsWithItsCodeAndReason) {
  auto lender = Lend("echo \"$* in $PWD\"; echo 'no such setting' >&2; exit 64\n");
  EXPECT_THAT(LentSlots(folder_.path()).List(), ElementsAre("node-1-0"));
  auto training = Begin();
  EXPECT_EQ(CodeOf(training.get(), lender.get()), 64);
  EXPECT_FALSE(training->lost());
  EXPECT_THAT(training->why(), HasSubstr("trial-00000-s0 ended with code 64: no such setting"));
  EXPECT_THAT(folder_.Read("log/trial-00000-s0.log"),
              HasSubstr("train --seed 7 in " + std::filesystem::canonical(folder_.path()).string()));
  // The slot takes the next one, and an answer is for its own order alone.
  training.reset();
  folder_.WriteScript("skein", "exit 0\n");
  training = Begin();
  EXPECT_EQ(training->Poll(), std::nullopt);
  EXPECT_EQ(CodeOf(training.get(), lender.get()), 0);
}

TEST_F(LentTrainingTest, EndsOrderlyWhenItIsAskedTo) {
  auto lender = Lend(endless_);
  auto training = Begin();
  WaitForStart(lender.get());
  training->Stop();
  EXPECT_EQ(CodeOf(training.get(), lender.get()), 0);
  EXPECT_EQ(folder_.Read("seen"), "begun\nended\n");
}

// As after kill -9 of the sweep: the kernel unlocks the order.
TEST_F(LentTrainingTest, EndsOrderlyWhenNobodyWantsItAnyMore) {
  auto lender = Lend(endless_);
  auto training = Begin();
  WaitForStart(lender.get());
  training.reset();
  EXPECT_TRUE(WaitUntil([&] {
    EXPECT_EQ(lender->Step(), absl::OkStatus());
    return lender->busy() == 0;
  }));
  EXPECT_EQ(folder_.Read("seen"), "begun\nended\n");
}

TEST_F(LentTrainingTest, IsLostWithItsWorker) {
  auto lender = Lend(endless_, 2);
  auto training = Begin("node-1-1");
  WaitForStart(lender.get());
  lender.reset();  // Its files are gone, its children killed.
  EXPECT_TRUE(WaitUntil([&] { return training->Poll().has_value(); }));
  EXPECT_TRUE(training->lost());
  EXPECT_THAT(training->why(), HasSubstr("the worker with slot node-1-1 has ended"));
  EXPECT_THAT(LentSlots(folder_.path()).List(), IsEmpty());
  EXPECT_TRUE(absl::IsUnavailable(
      LentTraining::Begin("node-1-1", {.id = "x", .cwd = folder_.path(), .folder = folder_.path()}).status()));
}

TEST_F(LentTrainingTest, AWorkerThatLeavesAnswersForNothing) {
  auto lender = Lend(endless_);
  auto training = Begin();
  WaitForStart(lender.get());
  lender->Leave();
  EXPECT_TRUE(WaitUntil([&] { return lender->Step().ok() && lender->busy() == 0; }));
  EXPECT_EQ(folder_.Read("seen"), "begun\nended\n");
  EXPECT_EQ(training->Poll(), std::nullopt);
  lender.reset();
  EXPECT_TRUE(WaitUntil([&] { return training->Poll().has_value(); }));
  EXPECT_TRUE(training->lost());
}

// It would fail each training three times.
TEST_F(LentTrainingTest, AWorkerRefusesOtherFolders) {
  auto lender = Lend("exit 0\n");
  const ScratchFolder other;
  const auto step_with = [&](SlotOrder order) {
    order.id = absl::StrCat("other-", ++orders_);
    order.folder = folder_.path();
    auto training = LentTraining::Begin("node-1-0", order);
    EXPECT_TRUE(training.ok()) << training.status();
    order.folder = other.path();
    folder_.Write("orders/node-1-0", order.cwd.empty() ? "{\"id\": 1}" : ToText(order));  // As seen from elsewhere.
    return lender->Step();
  };
  EXPECT_THAT(std::string(step_with({.cwd = "/nowhere"}).message()),
              HasSubstr("started in /nowhere, which is no folder"));
  EXPECT_THAT(std::string(step_with({.cwd = "/"}).message()), HasSubstr("which is not " + folder_.path()));
  EXPECT_EQ(step_with({}), absl::OkStatus());  // What is no order.
  EXPECT_EQ(lender->busy(), 0u);
}

TEST_F(LentTrainingTest, TermsSurviveTheFile) {
  EXPECT_TRUE(absl::IsNotFound(ReadTerms(folder_.path()).status()));
  SlotTerms terms;
  terms.cores = 3;
  terms.share.cpus = 0.5;
  terms.share.memory_bytes = uint64_t{1} << 40;
  terms.asked.gpus = 0.25;
  terms.device = "cuda";
  terms.over = true;
  ASSERT_EQ(WriteTerms(folder_.path(), terms), absl::OkStatus());
  const auto read = ReadTerms(folder_.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->over);
  EXPECT_EQ(read->cores, 3u);
  EXPECT_EQ(read->share.cpus, 0.5);
  EXPECT_EQ(read->share.gpus, std::nullopt);
  EXPECT_EQ(read->share.memory_bytes, uint64_t{1} << 40);
  EXPECT_EQ(read->asked.gpus, 0.25);
  EXPECT_EQ(read->device, "cuda");
  for (const char* damaged : {"", "[]", "{\"over\": 1}"}) {
    folder_.Write("slots.json", damaged);
    EXPECT_TRUE(absl::IsDataLoss(ReadTerms(folder_.path()).status())) << damaged;
  }
}

}  // namespace
}  // namespace skein
