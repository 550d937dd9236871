// SPDX-License-Identifier: Apache-2.0
// The supervisor over shell scripts that stand in for its programs.
#include "cli/run_supervisor.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/config/config.h"
#include "base/process/exit_code.h"
#include "gmock/gmock.h"
#include "launch/coordinator_addresses.h"
#include "tests/cli/scratch_folder.h"
#include "tests/launch/status_server.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Says where it listens (nobody does) and runs until SIGTERM; so do the others that should go on.
constexpr char kCoordinator[] = "echo 'coordinator listening grpc=127.0.0.1:1 http=http://127.0.0.1:2/'\n";
constexpr char kRunUntilTerm[] =
    "trap 'echo $0 stopped >> $(dirname $0)/events; exit 0' TERM\n"
    "while :; do sleep 0.01; done\n";

struct Session {
  Session() : out(std::tmpfile()), display(out, 0) {
    config = LoadRunConfig("", {"name=run", "env.id=CartPole-v1"}, 2).value();
    options.program_folder = folder.path();
    options.run_id = "run-1";
    options.actor_runners = {1};
    folder.WriteScript("skein-coordinator", absl::StrCat(kCoordinator, kRunUntilTerm));
    folder.WriteScript("skein-learner", "exit 0");
    folder.WriteScript("skein-actor", kRunUntilTerm);
  }
  ~Session() { std::fclose(out); }

  RunSupervisor::Outcome Run() {
    const auto directory = RunDirectory::Open(folder.path(), config, ResumeMode::kAuto);
    EXPECT_TRUE(directory.ok()) << directory.status();
    RunSupervisor supervisor(options, &*directory, &display);
    return supervisor.Run(stop);
  }

  ScratchFolder folder;
  // What was displayed so far.
  std::string Said() const {
    std::string text(8192, ' ');
    text.resize(static_cast<size_t>(pread(fileno(out), text.data(), text.size(), 0)));
    return text;
  }

  std::FILE* out;
  ProgressDisplay display;
  v1::RunConfig config;
  RunSupervisor::Options options;
  absl::Notification stop;
};

// Notifies `stop` as soon as the file is there.
std::thread StopWhenThere(Session* session, const std::string& file) {
  return std::thread([session, file] {
    while (session->folder.Read(file).empty()) std::this_thread::yield();
    session->stop.Notify();
  });
}

TEST(RunSupervisor, EndsWhenTheLearnerHasEnded) {
  Session session;
  session.folder.WriteScript("skein-actor", "exit 0");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_FALSE(outcome.stopped);
  EXPECT_FALSE(outcome.last_status.has_value());  // Nobody answers at port 1.
  EXPECT_THAT(session.folder.Read("events"), HasSubstr("skein-coordinator stopped"));
}

TEST(RunSupervisor, GivesItsProgramsTheirArguments) {
  Session session;
  session.options.actor_runners = {3};
  session.options.resume = ResumeMode::kMust;
  session.options.data_port = 7171;
  session.folder.WriteScript("skein-coordinator",
                             absl::StrCat("echo $0 \"$@\" >> $(dirname $0)/arguments\n", kCoordinator, kRunUntilTerm));
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
  Session session;
  session.folder.WriteScript("skein-learner", "echo 'skein-learner: model.safetensors is damaged' >&2; exit 65");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.failure,
              AllOf(HasSubstr("learner ended with code 65: skein-learner: model.safetensors is damaged"),
                    HasSubstr("run/log/learner.log")));
}

TEST(RunSupervisor, SaysHowToWatchARunAtTheDefaultAddress) {
  Session session;
  session.folder.WriteScript(
      "skein-coordinator",
      absl::StrCat("echo 'coordinator listening grpc=127.0.0.1:7070 http=http://127.0.0.1:2/'\n", kRunUntilTerm));
  EXPECT_EQ(session.Run().exit_code, 0);
  EXPECT_THAT(session.Said(), HasSubstr("skein top\n"));
}

TEST(RunSupervisor, PassesOnTheCodeOfACoordinatorThatCannotStart) {
  Session session;
  session.folder.WriteScript("skein-coordinator", "echo 'skein-coordinator: port 7070 is in use' >&2; exit 69");
  session.folder.WriteScript("skein-learner", "touch $(dirname $0)/learner-was-here");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.failure, HasSubstr("port 7070 is in use"));
  EXPECT_NE(access((session.folder.path() + "/learner-was-here").c_str(), F_OK), 0);
}

TEST(RunSupervisor, StartsADeadCoordinatorAgainAtItsAddressesWithoutANewSession) {
  Session session;
  session.folder.WriteScript("skein-coordinator", absl::StrCat("cd $(dirname $0); echo $@ >> arguments\n", kCoordinator,
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
  Session session;
  session.folder.WriteScript("skein-coordinator", absl::StrCat(kCoordinator, "kill -KILL $$"));
  session.folder.WriteScript("skein-learner", kRunUntilTerm);
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_THAT(outcome.failure, AllOf(HasSubstr("coordinator was ended by signal 9"),
                                     HasSubstr("it was started again three times within a minute")));
  EXPECT_THAT(session.folder.Read("events"), HasSubstr("skein-learner stopped"));
}

TEST(RunSupervisor, ACoordinatorThatDoesNotAnswerIsReportedAndStartedAgain) {
  Session session;
  session.options.heartbeat = absl::Milliseconds(200);
  session.options.lease = absl::Milliseconds(400);
  session.folder.WriteScript("skein-coordinator",
                             absl::StrCat("cd $(dirname $0); echo here >> starts\n", kCoordinator, kRunUntilTerm));
  session.folder.WriteScript("skein-learner", "while [ $(wc -l < $(dirname $0)/starts) -lt 2 ]; do sleep 0.01; done");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_FALSE(outcome.status_is_final);
  EXPECT_THAT(session.Said(), AllOf(HasSubstr("the coordinator has not answered for"),
                                    HasSubstr("starting the coordinator again, training goes on: the coordinator has "
                                              "not answered")));
}

TEST(RunSupervisor, EndsWithAnIoErrorWhereTheRunFolderIsDeleted) {
  Session session;
  session.folder.WriteScript("skein-learner", absl::StrCat("rm -rf \"$(dirname $0)/run\"\n", kRunUntilTerm));
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, kExitIo);
  EXPECT_THAT(outcome.failure, HasSubstr("run: the run folder, or its lock, was deleted or replaced"));
  // It would have written a checkpoint where there may be another run by now.
  EXPECT_THAT(session.folder.Read("events"), Not(HasSubstr("skein-learner stopped")));
}

TEST(RunSupervisor, StartsADeadActorAgain) {
  Session session;
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
  Session session;
  session.folder.WriteScript("skein-learner", kRunUntilTerm);
  session.folder.WriteScript("skein-actor", "echo 'skein-actor: unknown environment' >&2; exit 64");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_EQ(outcome.actor_restarts, 0u);
  EXPECT_THAT(outcome.failure, HasSubstr("unknown environment"));
}

TEST(RunSupervisor, LeavesADrainedActorAlone) {
  Session session;
  session.folder.WriteScript("skein-actor", "echo started >> $(dirname $0)/actors; exit 3");
  session.folder.WriteScript("skein-learner", "sleep 0.5");
  EXPECT_EQ(session.Run().exit_code, 0);
  EXPECT_EQ(session.folder.Read("actors"), "started\n");
  EXPECT_THAT(session.Said(), HasSubstr("an actor was drained and stays away (log: "));
}

// They are pasted into another shell, which has neither this one's folder nor its variables.
TEST(RunSupervisor, TheCommandsThatItPrintsHaveTheCredentials) {
  Session session;
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
  Session session;
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
  Session session;
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
  Session session;
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
  Session session;
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
  Session session;
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
  Session session;
  session.folder.WriteScript("skein-coordinator",
                             absl::StrCat("echo coordinator listening grpc=", coordinator.address(),
                                          " http=http://127.0.0.1:2/\n", kRunUntilTerm));
  session.folder.WriteScript("skein-actor", "exit 0");
  const auto outcome = session.Run();
  ASSERT_TRUE(outcome.last_status.has_value());
  EXPECT_TRUE(outcome.status_is_final);
  EXPECT_EQ(outcome.last_status->progress().env_steps(), 7u);
}

constexpr char kTellPlace[] = "echo $RANK of $WORLD_SIZE, $LOCAL_RANK here >> $(dirname $0)/place-$RANK\n";

TEST(RunSupervisor, StartsEachRankWithItsPlaceAndItsLog) {
  Session session;
  session.options.learners = 2;
  session.options.data_port = 7171;
  session.folder.WriteScript("skein-actor", "exit 0");
  session.folder.WriteScript("skein-learner", absl::StrCat(kTellPlace, "echo $@\n"));
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_EQ(session.folder.Read("place-0"), "0 of 2, 0 here\n");
  EXPECT_EQ(session.folder.Read("place-1"), "1 of 2, 1 here\n");
  for (const char* log : {"run/log/learner-0.log", "run/log/learner-1.log"}) {
    EXPECT_THAT(session.folder.Read(log), HasSubstr("--listen 127.0.0.1:7171 --metrics 127.0.0.1:0")) << log;
  }
}

TEST(RunSupervisor, WaitsForAllRanks) {
  Session session;
  session.options.learners = 2;
  session.folder.WriteScript("skein-actor", "exit 0");
  session.folder.WriteScript("skein-learner",
                             "cd $(dirname $0)\n"
                             "if [ $RANK = 1 ]; then echo over > over; exit 0; fi\n"
                             "while [ ! -s over ]; do sleep 0.01; done; echo saved > saved");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_EQ(session.folder.Read("saved"), "saved\n");
}

TEST(RunSupervisor, StartsALostRankAgainWhileTheOthersGoOn) {
  Session session;
  session.options.learners = 2;
  session.options.resume = ResumeMode::kNever;
  session.folder.WriteScript("skein-actor", "exit 0");
  // Rank 1 dies the first time; rank 0 goes on until it has come back.
  session.folder.WriteScript("skein-learner",
                             "cd $(dirname $0); echo $RANK $@ >> arguments\n"
                             "if [ $RANK = 1 ]; then [ -s died ] && { echo back > back; exit 0; }\n"
                             "  echo died > died; kill -KILL $$\n"
                             "fi\n"
                             "while [ ! -s back ]; do sleep 0.01; done\n");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_THAT(session.Said(), HasSubstr("starting again: learner-1 was ended by signal 9"));
  const std::string arguments = session.folder.Read("arguments");
  EXPECT_THAT(arguments, HasSubstr("--resume never"));
  EXPECT_THAT(arguments, HasSubstr("--resume auto"));  // The run has begun.
}

TEST(RunSupervisor, ARankThatComesBackAfterTheEndIsNoFailure) {
  Session session;
  session.options.learners = 2;
  session.folder.WriteScript("skein-actor", "exit 0");
  session.folder.WriteScript("skein-learner",
                             "cd $(dirname $0)\n"
                             "if [ $RANK = 1 ]; then [ -s died ] && { echo back > back; exit 75; }\n"
                             "  echo died > died; kill -KILL $$\n"
                             "fi\n"
                             "while [ ! -s back ]; do sleep 0.01; done\n");
  EXPECT_EQ(session.Run().exit_code, 0);
}

TEST(RunSupervisor, ARankThatKeepsDyingEndsTheSessionAndTheOthers) {
  Session session;
  session.options.learners = 3;
  session.folder.WriteScript("skein-learner",
                             absl::StrCat("cd $(dirname $0); echo up > up-$RANK\n"
                                          "if [ $RANK = 1 ]; then\n"
                                          "  while [ ! -s up-0 -o ! -s up-2 ]; do sleep 0.01; done; kill -KILL $$\n"
                                          "fi\n",
                                          "trap 'echo rank $RANK stopped >> events; exit 0' TERM\n"
                                          "while :; do sleep 0.01; done\n"));
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 137);
  EXPECT_FALSE(outcome.stopped);
  EXPECT_THAT(outcome.failure, AllOf(HasSubstr("learner-1 was ended by signal 9"), HasSubstr("run/log/learner-1.log")));
  EXPECT_THAT(session.folder.Read("events"), AllOf(HasSubstr("rank 0 stopped"), HasSubstr("rank 2 stopped")));
}

TEST(RunSupervisor, BlamesTheRankThatFailedNotThoseThatLostIt) {
  Session session;
  session.options.learners = 3;
  // All end between two looks at them: ranks 0 and 2 because rank 1 is gone.
  session.folder.WriteScript("skein-learner",
                             "[ $RANK = 1 ] || exit 75\n"
                             "echo 'skein-learner: the disk is full' >&2; exit 74");
  session.folder.WriteScript("skein-actor", "exit 0");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 74) << outcome.failure;
  EXPECT_THAT(outcome.failure, HasSubstr("learner-1 ended with code 74: skein-learner: the disk is full"));
}

TEST(RunSupervisor, KillsTheRanksThatCannotEndWithoutTheOneThatFailed) {
  Session session;
  session.options.learners = 2;
  session.options.orphan_stop = absl::Milliseconds(20);
  session.options.learner_stop = absl::Hours(1);
  session.folder.WriteScript("skein-learner",
                             "cd $(dirname $0)\n"
                             "if [ $RANK = 1 ]; then while [ ! -s up ]; do sleep 0.01; done; exit 70; fi\n"
                             "trap '' TERM; echo up > up; while :; do sleep 0.01; done\n");
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 70);
  EXPECT_THAT(outcome.failure, HasSubstr("learner-1 ended with code 70"));
}

TEST(RunSupervisor, StopsAllRanksAtOnce) {
  Session session;
  session.options.learners = 2;
  // Each ends only after the other has been asked to, too.
  session.folder.WriteScript("skein-learner",
                             "cd $(dirname $0)\n"
                             "trap 'echo asked > asked-$RANK' TERM\n"
                             "echo up > up-$RANK\n"
                             "while [ ! -s up-0 -o ! -s up-1 ]; do sleep 0.01; done; echo up > all-up\n"
                             "while [ ! -s asked-0 -o ! -s asked-1 ]; do sleep 0.01; done\n");
  std::thread stopper = StopWhenThere(&session, "all-up");
  const auto outcome = session.Run();
  stopper.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_TRUE(outcome.stopped);
}

// The session's coordinator answers with what the test says.
struct Elsewhere {
  explicit Elsewhere(const v1::StatusResponse& status) : coordinator(status) {
    session.options.learners = 0;
    session.options.actor_runners.clear();
    session.folder.WriteScript("skein-coordinator",
                               absl::StrCat("echo coordinator listening grpc=", coordinator.address(),
                                            " http=http://127.0.0.1:2/\n", kRunUntilTerm));
    session.folder.WriteScript("skein-learner", "echo started > $(dirname $0)/learner-was-here");
  }
  const StatusServer coordinator;
  Session session;
};

v1::StatusResponse InState(v1::RunState state) {
  v1::StatusResponse status;
  status.set_state(state);
  return status;
}

TEST(RunSupervisor, WithLearnersElsewhereSaysHowToStartThemAndEndsWhenTheyHaveFinished) {
  Elsewhere elsewhere(InState(v1::RUN_STATE_FINISHED));
  Session& session = elsewhere.session;
  session.options.host = "0.0.0.0";
  session.options.announce_host = "head";
  session.options.data_port = 7171;
  const auto outcome = session.Run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(session.folder.Read("learner-was-here"), "");
  const std::string said = session.Said();
  EXPECT_THAT(said,
              AllOf(HasSubstr("torchrun --no-python --nproc_per_node=2 "), HasSubstr("srun -n 2 "),
                    HasSubstr("/skein-learner --coordinator head:"),
                    HasSubstr(absl::StrCat(" --run-dir ", session.folder.path(), "/run --listen 0.0.0.0:7171\n"))));
}

TEST(RunSupervisor, WithLearnersElsewhereGoesOnWhenTheyHaveFailedAndStopsOnRequest) {
  Elsewhere elsewhere(InState(v1::RUN_STATE_FAILED));
  Session& session = elsewhere.session;
  std::thread stopper([&session] {
    while (session.Said().find("(failed): start them again to go on") == std::string::npos) std::this_thread::yield();
    session.stop.Notify();
  });
  const auto outcome = session.Run();
  stopper.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.failure;
  EXPECT_TRUE(outcome.stopped);
  EXPECT_THAT(session.Said(), HasSubstr("learners that were started elsewhere are to be stopped there"));
}

TEST(RunSupervisor, SaysWhichProgramIsMissing) {
  Session session;
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
