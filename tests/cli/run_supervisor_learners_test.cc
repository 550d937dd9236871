// SPDX-License-Identifier: Apache-2.0
// Sessions with several learners, or with learners that were started elsewhere.
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/cli/supervised_session.h"
#include "tests/launch/status_server.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kTellPlace[] = "echo $RANK of $WORLD_SIZE, $LOCAL_RANK here >> $(dirname $0)/place-$RANK\n";

TEST(RunSupervisor, StartsEachRankWithItsPlaceAndItsLog) {
  SupervisedSession session;
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
  SupervisedSession session;
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
  SupervisedSession session;
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
  SupervisedSession session;
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
  SupervisedSession session;
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
  SupervisedSession session;
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
  SupervisedSession session;
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
  SupervisedSession session;
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
  SupervisedSession session;
};

v1::StatusResponse InState(v1::RunState state) {
  v1::StatusResponse status;
  status.set_state(state);
  return status;
}

TEST(RunSupervisor, WithLearnersElsewhereSaysHowToStartThemAndEndsWhenTheyHaveFinished) {
  Elsewhere elsewhere(InState(v1::RUN_STATE_FINISHED));
  SupervisedSession& session = elsewhere.session;
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
  SupervisedSession& session = elsewhere.session;
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

}  // namespace
}  // namespace skein
