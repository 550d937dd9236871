// SPDX-License-Identifier: Apache-2.0
// Whole sessions over shell scripts that stand in for the programs.
#include "cli/training_session.h"

#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "eval/evaluation_result.h"
#include "gmock/gmock.h"
#include "learner/run/checkpoint.h"
#include "tests/cli/scratch_folder.h"
#include "tests/launch/status_server.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Ran {
  int code;
  std::string out, error;
};

class TrainingSession : public testing::Test {
 protected:
  TrainingSession() {
    options_.env_id = "CartPole-v1";
    options_.name = "run";
    options_.runs_dir = folder_.path();
    options_.runners = "2";
    options_.steps = 1000;
    folder_.WriteScript("skein-coordinator",
                        "echo 'coordinator listening grpc=127.0.0.1:1 http=http://127.0.0.1:2/'\n"
                        "trap 'exit 0' TERM; while :; do sleep 0.01; done");
    folder_.WriteScript("skein-learner", LearnerThatSaves(1024));
    folder_.WriteScript("skein-actor", "exit 0");
    folder_.Write("answer", ToJson({.env_id = "CartPole-v1", .returns = {500}, .lengths = {500}}) + "\n");
    folder_.WriteScript("skein-eval", "cat $(dirname $0)/answer");
  }

  // A checkpoint without tensors in `folder`; returns its digest.
  static std::string Save(const std::string& folder, uint64_t steps) {
    Checkpoint checkpoint;
    checkpoint.env_steps = steps;
    checkpoint.counters = {{"collected", steps + 1}, {"trained", steps}, {"lost", 1}};
    EXPECT_TRUE(SaveCheckpoint(folder, checkpoint, 9).ok());
    return CheckpointDigest(checkpoint);
  }

  std::string LearnerThatSaves(uint64_t steps) const {
    const std::string made = absl::StrCat("made-", steps);
    Save(folder_.path() + "/" + made, steps);
    return absl::StrCat("cd $(dirname $0); mkdir -p run/checkpoints; cp -r ", made, "/step_* run/checkpoints/");
  }

  static v1::StatusResponse StatusOf(uint64_t start_env_steps) {
    v1::StatusResponse status;
    status.mutable_progress()->set_start_env_steps(start_env_steps);
    status.mutable_progress()->set_policy_version(3);
    return status;
  }

  void AnswerWith(const StatusServer& coordinator) const {
    folder_.WriteScript("skein-coordinator",
                        absl::StrCat("echo coordinator listening grpc=", coordinator.address(),
                                     " http=http://127.0.0.1:2/\ntrap 'exit 0' TERM; while :; do sleep 0.01; done"));
  }

  Ran Train() {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Ran ran;
    ran.code = RunTraining(options_, "skein train", folder_.path());
    ran.out = testing::internal::GetCapturedStdout();
    ran.error = testing::internal::GetCapturedStderr();
    return ran;
  }

  ScratchFolder folder_;
  LaunchOptions options_;
};

TEST_F(TrainingSession, TrainsEvaluatesAndReports) {
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("status page and metrics discovery: http://127.0.0.1:2/\n"),
                    HasSubstr("trained: 1,024 env steps in"), HasSubstr("evaluation: return 500.0 +- 0.0"),
                    HasSubstr("step account: collected 1,025 = trained 1,024 + stale 0 + rejected 0 + lost 1\n"),
                    HasSubstr(absl::StrCat("run/checkpoints/step_000000001024 (digest ",
                                           Save(folder_.path() + "/same", 1024), ")"))));
  EXPECT_THAT(folder_.Read("run/eval.json"), HasSubstr("\"return_mean\":500.0"));
  EXPECT_EQ(ran.error, "");
}

TEST_F(TrainingSession, WithItsTargetReachedLetsTheLearnerVerifyItAndEvaluates) {
  ASSERT_EQ(Train().code, 0);
  folder_.WriteScript("skein-learner", "exit 0");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("target already reached: 1,024 of 1,000"), HasSubstr("evaluation: return"),
                             Not(HasSubstr("trained:"))));
  folder_.WriteScript("skein-learner", "echo 'skein-learner: every checkpoint is damaged' >&2; exit 65");
  const Ran damaged = Train();
  EXPECT_EQ(damaged.code, 65);
  EXPECT_THAT(damaged.error, HasSubstr("every checkpoint is damaged"));
  EXPECT_THAT(damaged.out, Not(HasSubstr("evaluation:")));
}

TEST_F(TrainingSession, SaysThatTheLearnerWentBackBehindADamagedCheckpoint) {
  const std::string checkpoints = folder_.path() + "/run/checkpoints/";
  ASSERT_EQ(Train().code, 0);
  Save(checkpoints, 512);
  folder_.Write("run/checkpoints/step_000000001024/model.safetensors", "damaged");
  StatusServer coordinator(StatusOf(256));  // 512 - 256 = 256 were trained.
  AnswerWith(coordinator);
  folder_.WriteScript("skein-learner", "exit 0");  // As if it had been stopped.
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.error,
              HasSubstr(absl::StrCat("skein train: warning: ", checkpoints, "step_000000001024 is damaged")));
  EXPECT_THAT(ran.error, HasSubstr("went on from 256 env steps\n"));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("stopped before the target of 1,000"), HasSubstr("trained: 256 env steps")));
}

TEST_F(TrainingSession, TheLastReportIsOfWhatIsOnTheDiskWhateverTheCoordinatorSaidBefore) {
  // It tells of an early checkpoint, which is gone, and then answers no more.
  v1::StatusResponse early = StatusOf(0);
  early.mutable_progress()->set_checkpoint(folder_.path() + "/run/checkpoints/step_000000000007");
  early.mutable_progress()->set_env_steps(8);
  early.mutable_progress()->mutable_account()->set_collected(8);
  auto coordinator = std::make_unique<StatusServer>(early);
  AnswerWith(*coordinator);
  folder_.WriteScript("skein-learner",
                      absl::StrCat("while [ ! -e $(dirname $0)/gone ]; do sleep 0.01; done\n", LearnerThatSaves(1024)));
  std::thread ending([&] {
    coordinator->WaitForCall();
    coordinator.reset();
    folder_.Write("gone", "");
  });
  const Ran ran = Train();
  ending.join();
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("trained: 1,024 env steps"), HasSubstr("collected 1,025 = trained 1,024"),
                             HasSubstr("step_000000001024 (digest "), HasSubstr("evaluation: return 500.0"),
                             Not(HasSubstr("stopped before"))));
}

TEST_F(TrainingSession, SaysHowManyOldCopiesThereAre) {
  ASSERT_EQ(Train().code, 0);
  options_.resume = "never";
  EXPECT_THAT(Train().out, HasSubstr("moved the old run to " + folder_.path() + "/run.old-1; 1 old copy takes 1 MiB"));
  EXPECT_THAT(Train().out,
              HasSubstr("/run.old-2; 2 old copies take 1 MiB and can be deleted: " + folder_.path() + "/run.old-*\n"));
}

TEST_F(TrainingSession, PassesOnTheWarningsOfTheEvaluation) {
  folder_.Write("answer", ToJson({.env_id = "CartPole-v1",
                                  .checkpoint = "step_0",
                                  .returns = {500},
                                  .lengths = {500},
                                  .warnings = {"skipped step_1: damaged"}}) +
                              "\n");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.error, HasSubstr("skein train: warning: skipped step_1: damaged\n"));
  EXPECT_THAT(ran.out, HasSubstr("evaluated instead: step_0\n"));
}

TEST_F(TrainingSession, GoesOnFromACheckpointAndCountsOnlyItsOwnSteps) {
  folder_.WriteScript("skein-learner", LearnerThatSaves(400));
  const Ran first = Train();
  EXPECT_EQ(first.code, 0) << first.error;
  EXPECT_THAT(first.out, AllOf(HasSubstr("stopped before the target of 1,000"), Not(HasSubstr("evaluation:"))));
  folder_.WriteScript("skein-learner", LearnerThatSaves(1000));
  const Ran second = Train();
  EXPECT_THAT(second.out, AllOf(HasSubstr("resuming at 400 of 1,000"), HasSubstr("trained: 600 env steps")));
}

TEST_F(TrainingSession, WithoutEvaluationStartsNone) {
  options_.session.no_eval = true;
  folder_.WriteScript("skein-eval", "exit 1");
  EXPECT_EQ(Train().code, 0);
  options_.session.no_eval = false;
  options_.overrides = {"eval.episodes=0"};
  options_.name = "other";
  folder_.WriteScript("skein-learner", "exit 0");
  EXPECT_EQ(Train().code, 0);
}

TEST_F(TrainingSession, EndsWithTheCodeAndTheReasonOfAFailure) {
  folder_.WriteScript("skein-learner", "echo 'skein-learner: no space left' >&2; exit 74");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 74);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("skein train: learner ended with code 74"), HasSubstr("no space left")));
}

TEST_F(TrainingSession, RefusesADeviceThatIsNotHereBeforeItStarts) {
  const char* const before = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string visible = before == nullptr ? "" : before;
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  options_.device = "cuda";
  const Ran ran = Train();
  before == nullptr ? unsetenv("CUDA_VISIBLE_DEVICES") : setenv("CUDA_VISIBLE_DEVICES", visible.c_str(), 1);
  EXPECT_EQ(ran.code, 64);
  EXPECT_THAT(ran.error, HasSubstr("learner.device (--device): got 'cuda', but there is no GPU for CUDA here"));
  EXPECT_EQ(folder_.Read("run/config.yaml"), "");
}

TEST_F(TrainingSession, RefusesMoreThanThisMachineHasBeforeItStarts) {
  setenv("SKEIN_BOOKINGS", (folder_.path() + "/bookings").c_str(), 1);
  options_.overrides = {"resources.actor.cpus=60000"};
  const Ran ran = Train();
  unsetenv("SKEIN_BOOKINGS");
  EXPECT_EQ(ran.code, 64);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("skein train: resources.actor.cpus"), HasSubstr("ask for 60000 of CPUs"),
                               HasSubstr("is left on this machine")));
  EXPECT_EQ(folder_.Read("run/config.yaml"), "");
}

TEST_F(TrainingSession, SaysHowSharesAreEnforced) {
  setenv("SKEIN_BOOKINGS", (folder_.path() + "/bookings").c_str(), 1);
  options_.overrides = {"resources.actor.cpus=0.5", "resources.learner.memory=1GiB"};
  const Ran ran = Train();
  unsetenv("SKEIN_BOOKINGS");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("share of each learner: memory by a "), HasSubstr("share of each actor: CPU by ")));
}

TEST_F(TrainingSession, SaysTheFirstErrorBesideALogThatIsCut) {
  v1::StatusResponse status = StatusOf(0);
  status.mutable_progress()->set_last_error("checkpoint not written: No space left on device");
  const StatusServer coordinator(status);
  AnswerWith(coordinator);
  folder_.WriteScript("skein-learner", "printf '21:21:41 error [skein-learner] c'; exit 74");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 74);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("first error: checkpoint not written: No space left on device\n"),
                               HasSubstr("its log breaks off before the reason")));
}

TEST_F(TrainingSession, SaysAnErrorOnceThatTheLearnerEndsWith) {
  v1::StatusResponse status = StatusOf(0);
  status.set_last_error("learner-0: no return is finite");
  status.mutable_progress()->set_last_error("no return is finite");
  const StatusServer coordinator(status);
  AnswerWith(coordinator);
  folder_.WriteScript("skein-learner", "echo 'skein-learner: no return is finite'; exit 65");
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("learner ended with code 65: skein-learner: no return is finite (log: "),
                               Not(HasSubstr("first error: "))));
}

TEST_F(TrainingSession, WritesNothingForAMistakenCommand) {
  options_.overrides = {"env.id=NoSuchEnv-v0"};
  const Ran ran = Train();
  EXPECT_EQ(ran.code, 64);
  EXPECT_THAT(ran.error, HasSubstr("NoSuchEnv-v0"));
  EXPECT_EQ(folder_.Read("run/config.yaml"), "");
}

TEST_F(TrainingSession, HeadTellsHowToAddWorkers) {
  options_.actors = 0;
  options_.runners = "auto";
  EXPECT_THAT(Train().out, AllOf(HasSubstr("skein worker --address 127.0.0.1:1\n"),
                                 HasSubstr("at most 2 runners, of all workers together")));
}

}  // namespace
}  // namespace skein
