// SPDX-License-Identifier: Apache-2.0
#include "cli/final_evaluation.h"

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

struct Fixture {
  Fixture() : config(LoadRunConfig("", {"name=run", "env.id=CartPole-v1", "seed=5"}, 2).value()) {}

  absl::StatusOr<EvaluationResult> Run() {
    const auto directory = RunDirectory::Open(folder.path(), config, ResumeMode::kAuto);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return EvaluateRun(folder.path(), *directory, config, stop);
  }

  ScratchFolder folder;
  v1::RunConfig config;
  absl::Notification stop;
};

TEST(EvaluateRun, WritesWhatTheProgramFound) {
  Fixture fixture;
  const EvaluationResult found{.env_id = "CartPole-v1", .returns = {500, 400}, .lengths = {500, 400}};
  fixture.folder.Write("answer", ToJson(found) + "\n");
  fixture.folder.WriteScript("skein-eval", "echo \"$@\" > $(dirname $0)/arguments; cat $(dirname $0)/answer");
  const auto result = fixture.Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->returns, found.returns);
  EXPECT_EQ(fixture.folder.Read("run/eval.json"), ToJson(found) + "\n");
  EXPECT_EQ(fixture.folder.Read("arguments"),
            "--checkpoint " + fixture.folder.path() + "/run --episodes 10 --seed 5 --json --exit-with-parent\n");
}

TEST(EvaluateRun, PassesOnTheReasonOfAFailure) {
  Fixture fixture;
  fixture.folder.WriteScript("skein-eval", "echo 'skein eval: DONE is missing' >&2; exit 65");
  const auto status = fixture.Run().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("DONE is missing"));
  EXPECT_EQ(fixture.folder.Read("run/eval.json"), "");
}

TEST(EvaluateRun, RefusesAnAnswerThatIsNone) {
  Fixture fixture;
  fixture.folder.WriteScript("skein-eval", "echo hello");
  EXPECT_TRUE(absl::IsDataLoss(fixture.Run().status()));
  fixture.folder.WriteScript("skein-eval", "exit 0");
  EXPECT_TRUE(absl::IsInternal(fixture.Run().status()));
}

TEST(EvaluateRun, EndsWhenItIsStopped) {
  Fixture fixture;
  fixture.folder.WriteScript("skein-eval", "exec sleep 60");
  fixture.stop.Notify();
  EXPECT_TRUE(absl::IsCancelled(fixture.Run().status()));
}

TEST(EvaluateRun, WithoutTheProgramIsUnavailable) {
  Fixture fixture;
  EXPECT_TRUE(absl::IsUnavailable(fixture.Run().status()));
}

}  // namespace
}  // namespace skein
