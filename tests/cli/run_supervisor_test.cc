// SPDX-License-Identifier: Apache-2.0
// The supervisor over shell scripts that stand in for its programs.
#include "cli/run_supervisor.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/exit_code.h"
#include "gmock/gmock.h"
#include "launch/coordinator_addresses.h"
#include "tests/cli/supervised_session.h"
#include "tests/launch/status_server.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(RunSupervisor, EndsWhenTheLearnerHasEnded) {
  SupervisedSession session;
  session.folder.WriteScript("skein-actor", "exit 0");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_FALSE(outcome.stopped);
  EXPECT_FALSE(outcome.last_status.has_value());  // Nobody answers at port 1.
  EXPECT_THAT(session.folder.Read("events"), HasSubstr("skein-coordinator stopped"));
}

TEST(RunSupervisor, GivesItsProgramsTheirArguments) {
  SupervisedSession session;
  session.options.actor_runners = {3};
  session.options.resume = ResumeMode::kMust;
  session.options.data_port = 7171;
  session.folder.WriteScript("skein-coordinator", absl::StrCat("echo $0 \"$@\" >> $(dirname $0)/arguments\n",
                                                               kCoordinatorLine, kRunUntilTerm));
  session.folder.WriteScript("skein-actor", "echo $0 \"$@\" > $(dirname $0)/actor; exit 0");
  session.folder.WriteScript("skein-learner",
                             "while [ ! -s $(dirname $0)/actor ]; do sleep 0.01; done\n"
                             "echo $0 \"$@\" >> $(dirname $0)/arguments");
  EXPECT_EQ(session.Run().exit_code, 0);
  const std::string run = session.folder.path() + "/run";
  EXPECT_THAT(session.folder.Read("arguments"),
              AllOf(HasSubstr(absl::StrCat("skein-coordinator --config ", run,
                                           "/config.yaml --listen 127.0.0.1:0 --http "
                                           "127.0.0.1:0 --run-dir ",
                                           run, " --run-id run-1 --announce-host 127.0.0.1 --log-json ", run,
                                           "/log.jsonl --exit-with-parent --new-session\n")),
                    HasSubstr(absl::StrCat("skein-learner --coordinator 127.0.0.1:1 --run-dir ", run,
                                           " --listen 127.0.0.1:7171 --metrics 127.0.0.1:0 --resume must --timeout 30s "
                                           "--log-json ",
                                           run, "/log.jsonl --exit-with-parent\n"))));
  EXPECT_THAT(session.folder.Read("actor"), HasSubstr("--coordinator 127.0.0.1:1 --runners 3 --metrics 127.0.0.1:0"));
}

TEST(RunSupervisor, PassesOnTheCodeAndTheReasonOfAFailedLearner) {
  SupervisedSession session;
  session.folder.WriteScript("skein-learner", "echo 'skein-learner: model.safetensors is damaged' >&2; exit 65");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.failure,
              AllOf(HasSubstr("learner ended with code 65: skein-learner: model.safetensors is damaged"),
                    HasSubstr("run/log/learner.log")));
}

TEST(RunSupervisor, SaysHowToWatchARunAtTheDefaultAddress) {
  SupervisedSession session;
  session.folder.WriteScript(
      "skein-coordinator",
      absl::StrCat("echo 'coordinator listening grpc=127.0.0.1:7070 http=http://127.0.0.1:2/'\n", kRunUntilTerm));
  EXPECT_EQ(session.Run().exit_code, 0);
  EXPECT_THAT(session.Said(), HasSubstr("skein top\n"));
}

TEST(RunSupervisor, PassesOnTheCodeOfACoordinatorThatCannotStart) {
  SupervisedSession session;
  session.folder.WriteScript("skein-coordinator", "echo 'skein-coordinator: port 7070 is in use' >&2; exit 69");
  session.folder.WriteScript("skein-learner", "touch $(dirname $0)/learner-was-here");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.failure, HasSubstr("port 7070 is in use"));
  EXPECT_NE(access((session.folder.path() + "/learner-was-here").c_str(), F_OK), 0);
}

TEST(RunSupervisor, StartsADeadCoordinatorAgainAtItsAddressesWithoutANewSession) {
  SupervisedSession session;
  session.folder.WriteScript("skein-coordinator",
                             absl::StrCat("cd $(dirname $0); echo $@ >> arguments\n", kCoordinatorLine,
                                          "[ -s died ] || { echo yes > died; kill -KILL $$; }\n"
                                          "echo yes > second\n",
                                          kRunUntilTerm));
  session.folder.WriteScript("skein-learner", "while [ ! -s $(dirname $0)/second ]; do sleep 0.01; done");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_THAT(session.Said(), HasSubstr("starting the coordinator again, training goes on: coordinator was ended by "
                                        "signal 9"));
  const std::vector<std::string> starts = absl::StrSplit(session.folder.Read("arguments"), '\n');
  ASSERT_EQ(starts.size(), 3u);  // The last one is empty.
  EXPECT_THAT(starts[0], AllOf(HasSubstr("--listen 127.0.0.1:0 --http 127.0.0.1:0 "), HasSubstr("--new-session")));
  EXPECT_THAT(starts[1], AllOf(HasSubstr("--listen 127.0.0.1:1 --http 127.0.0.1:2 "), Not(HasSubstr("--new-session"))));
}

TEST(RunSupervisor, ACoordinatorThatKeepsDyingEndsTheSessionAndTheOthers) {
  SupervisedSession session;
  session.folder.WriteScript("skein-coordinator", absl::StrCat(kCoordinatorLine, "kill -KILL $$"));
  session.folder.WriteScript("skein-learner", kRunUntilTerm);
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_THAT(outcome.failure, AllOf(HasSubstr("coordinator was ended by signal 9"),
                                     HasSubstr("it was started again three times within a minute")));
  EXPECT_THAT(session.folder.Read("events"), HasSubstr("skein-learner stopped"));
}

TEST(RunSupervisor, ACoordinatorThatDoesNotAnswerIsReportedAndStartedAgain) {
  SupervisedSession session;
  session.options.heartbeat = absl::Milliseconds(200);
  session.options.lease = absl::Milliseconds(400);
  session.folder.WriteScript("skein-coordinator",
                             absl::StrCat("cd $(dirname $0); echo here >> starts\n", kCoordinatorLine, kRunUntilTerm));
  session.folder.WriteScript("skein-learner", "while [ $(wc -l < $(dirname $0)/starts) -lt 2 ]; do sleep 0.01; done");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_FALSE(outcome.status_is_final);
  EXPECT_THAT(session.Said(), AllOf(HasSubstr("the coordinator has not answered for"),
                                    HasSubstr("starting the coordinator again, training goes on: the coordinator has "
                                              "not answered")));
}

TEST(RunSupervisor, EndsWithAnIoErrorWhereTheRunFolderIsDeleted) {
  SupervisedSession session;
  session.folder.WriteScript("skein-learner", absl::StrCat("rm -rf \"$(dirname $0)/run\"\n", kRunUntilTerm));
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, kExitIo);
  EXPECT_THAT(outcome.failure, HasSubstr("run: the run folder, or its lock, was deleted or replaced"));
  // It would have written a checkpoint where there may be another run by now.
  EXPECT_THAT(session.folder.Read("events"), Not(HasSubstr("skein-learner stopped")));
}

TEST(RunSupervisor, StartsADeadActorAgain) {
  SupervisedSession session;
  // The first one dies; the second lets the learner end.
  session.folder.WriteScript("skein-actor", absl::StrCat("cd $(dirname $0)\n"
                                                         "if [ ! -e died ]; then touch died; kill -KILL $$; fi\n"
                                                         "echo yes > second\n",
                                                         "exit 0\n"));
  session.folder.WriteScript("skein-learner", "while [ ! -s $(dirname $0)/second ]; do sleep 0.01; done");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_EQ(outcome.actor_restarts, 1u);
}

TEST(RunSupervisor, DoesNotStartAnActorAgainThatWasGivenNonsense) {
  SupervisedSession session;
  session.folder.WriteScript("skein-learner", kRunUntilTerm);
  session.folder.WriteScript("skein-actor", "echo 'skein-actor: unknown environment' >&2; exit 64");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_EQ(outcome.actor_restarts, 0u);
  EXPECT_THAT(outcome.failure, HasSubstr("unknown environment"));
}

TEST(RunSupervisor, LeavesADrainedActorAlone) {
  SupervisedSession session;
  session.folder.WriteScript("skein-actor", "echo started >> $(dirname $0)/actors; exit 3");
  session.folder.WriteScript("skein-learner", "sleep 0.5");
  EXPECT_EQ(session.Run().exit_code, 0);
  EXPECT_EQ(session.folder.Read("actors"), "started\n");
  EXPECT_THAT(session.Said(), HasSubstr("an actor was drained and stays away (log: "));
}

// They are pasted into another shell, which has neither this one's folder nor its variables.
TEST(RunSupervisor, TheCommandsThatItPrintsHaveTheCredentials) {
  SupervisedSession session;
  session.folder.WriteScript("skein-actor", "exit 3");  // Drained.
  session.folder.WriteScript("skein-learner", "sleep 0.5");
  const std::string folder = session.folder.path();
  for (const char* file : {"node.crt", "node.key", "actor.crt", "actor.key", "client.crt", "client.key"}) {
    session.folder.Write(file, "pem");
  }
  const std::vector<std::pair<const char*, std::string>> variables = {{"SKEIN_TLS_CERT", folder + "/node.crt"},
                                                                      {"SKEIN_TLS_KEY", folder + "/node.key"},
                                                                      {"SKEIN_TLS_CA", folder + "/ca.crt"},
                                                                      {"SKEIN_TOKEN_FILE", folder + "/token"}};
  for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
  EXPECT_EQ(session.Run().exit_code, 0);
  for (const auto& [name, value] : variables) unsetenv(name);
  const auto flags = [&](const char* role) {
    return absl::StrCat(" --address 127.0.0.1:1 --tls-cert ", folder, "/", role, ".crt --tls-key ", folder, "/", role,
                        ".key --tls-ca ", folder, "/ca.crt --token-file ", folder, "/token\n");
  };
  EXPECT_THAT(session.Said(), HasSubstr("/skein top" + flags("client")));
  EXPECT_THAT(session.Said(), HasSubstr("no actor is left on this machine; add one with: "));
  EXPECT_THAT(session.Said(), HasSubstr("/skein worker" + flags("actor")));
}

TEST(RunSupervisor, LeavesAnActorAloneThatLeftWhenAllIsTrained) {
  SupervisedSession session;
  v1::StatusResponse status;
  status.set_state(v1::RUN_STATE_TRAINING);  // The learner writes the last checkpoint.
  status.mutable_progress()->set_env_steps(7);
  status.mutable_progress()->set_target_env_steps(7);
  const StatusServer coordinator(status);
  session.folder.WriteScript("skein-coordinator",
                             absl::StrCat("echo 'coordinator listening grpc=", coordinator.address(),
                                          " http=http://127.0.0.1:2/'\n", kRunUntilTerm));
  session.options.restart_after_leave = absl::Milliseconds(1500);  // The status is asked for each second.
  session.folder.WriteScript("skein-actor", "exit 0");
  session.folder.WriteScript("skein-learner", "sleep 2.5");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_EQ(outcome.actor_restarts, 0u);
}

TEST(RunSupervisor, StopsTheLearnerFirstAndTheCoordinatorLast) {
  SupervisedSession session;
  session.folder.WriteScript("skein-learner", absl::StrCat("echo up > $(dirname $0)/up\n", kRunUntilTerm));
  session.folder.WriteScript("skein-actor", absl::StrCat("echo up > $(dirname $0)/actor-up\n", kRunUntilTerm));
  std::thread stopper = StopWhenThere(&session, "actor-up");
  const auto outcome = session.Run();
  stopper.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_TRUE(outcome.stopped);
  const std::string events = session.folder.Read("events");
  const size_t learner = events.find("learner"), actor = events.find("actor"), last = events.find("coordinator");
  EXPECT_LT(learner, actor) << events;
  EXPECT_LT(actor, last) << events;
}

TEST(RunSupervisor, WaitsForALearnerThatTakesLongAndSaysSo) {
  SupervisedSession session;
  session.options.notice_after = absl::Milliseconds(1);
  session.folder.WriteScript("skein-learner",
                             "trap 'sleep 0.1; echo saved > $(dirname $0)/saved; exit 0' TERM\n"
                             "echo up > $(dirname $0)/up\n"
                             "while :; do sleep 0.01; done\n");
  std::thread stopper = StopWhenThere(&session, "up");
  const auto outcome = session.Run();
  stopper.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(session.folder.Read("saved"), "saved\n");
  EXPECT_THAT(session.Said(), HasSubstr("still waiting for the learner's checkpoint; press Ctrl-C again to give up"));
}

TEST(RunSupervisor, KillsALearnerThatDoesNotEnd) {
  SupervisedSession session;
  session.options.notice_after = absl::Milliseconds(1);
  session.options.learner_stop = absl::Milliseconds(20);
  session.folder.WriteScript("skein-learner",
                             "trap '' TERM\necho up > $(dirname $0)/up\nwhile :; do sleep 0.01; done\n");
  std::thread stopper = StopWhenThere(&session, "up");
  const auto outcome = session.Run();
  stopper.join();
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_THAT(outcome.failure, HasSubstr("learner was ended by signal 9"));
}

TEST(RunSupervisor, StoppedBeforeTheLearnerHasJoinedIsNoFailure) {
  SupervisedSession session;
  session.folder.WriteScript("skein-learner",
                             "trap 'exit 75' TERM\necho up > $(dirname $0)/up\nwhile :; do sleep 0.01; done\n");
  std::thread stopper = StopWhenThere(&session, "up");
  const auto outcome = session.Run();
  stopper.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_TRUE(outcome.stopped);
}

TEST(RunSupervisor, TellsTheLastStatus) {
  v1::StatusResponse status;
  status.mutable_progress()->set_env_steps(7);
  const StatusServer coordinator(status);
  SupervisedSession session;
  session.folder.WriteScript("skein-coordinator",
                             absl::StrCat("echo coordinator listening grpc=", coordinator.address(),
                                          " http=http://127.0.0.1:2/\n", kRunUntilTerm));
  session.folder.WriteScript("skein-actor", "exit 0");
  const auto outcome = session.Run();
  ASSERT_TRUE(outcome.last_status.has_value());
  EXPECT_TRUE(outcome.status_is_final);
  EXPECT_EQ(outcome.last_status->progress().env_steps(), 7u);
}

TEST(RunSupervisor, SaysWhichProgramIsMissing) {
  SupervisedSession session;
  session.options.program_folder = "/nowhere";
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, kExitUnavailable);
  EXPECT_THAT(outcome.failure, HasSubstr("/nowhere/skein-coordinator"));
}

TEST(ParseCoordinatorLine, FindsBothAddresses) {
  const auto addresses = ParseCoordinatorLine("coordinator listening grpc=[::1]:7 http=http://[::1]:8/");
  ASSERT_TRUE(addresses.ok());
  EXPECT_EQ(addresses->grpc, "[::1]:7");
  EXPECT_EQ(addresses->http_url, "http://[::1]:8/");
  EXPECT_TRUE(absl::IsInternal(ParseCoordinatorLine("hello").status()));
}

}  // namespace
}  // namespace skein
