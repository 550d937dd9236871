// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/history_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// `lines`: the fields of one event each, in order of time; "pid" is 1 unless they say otherwise.
std::vector<HistoryEvent> HistoryOf(const std::vector<std::string>& lines) {
  std::vector<HistoryEvent> history;
  for (const std::string& line : lines) {
    const auto fields = nlohmann::json::parse(line);
    history.push_back(
        {static_cast<double>(history.size()), fields.value("pid", uint64_t{1}), fields.at("event"), fields});
  }
  return history;
}

std::string FragmentEvent(int sequence, const std::string& result, int pid = 1) {
  return R"({"event":"batch","actor":"actor-1","generation":7,"env_steps":10,"sequence":)" + std::to_string(sequence) +
         R"(,"result":")" + result + R"(","pid":)" + std::to_string(pid) + "}";
}

std::string Join(const std::string& id, int generation, const std::string& role, int rank = 0) {
  return R"({"event":"join","member":")" + id + R"(","generation":)" + std::to_string(generation) + R"(,"role":")" +
         role + R"(","rank":)" + std::to_string(rank) + "}";
}

std::string Pass(const std::string& member, int generation, const std::string& members) {
  return R"({"event":"barrier","name":"b","member":")" + member + R"(","barrier_generation":)" +
         std::to_string(generation) + R"(,"members":")" + members + R"("})";
}

std::string Policy(int version, const std::string& learner = "a:1", int connection = 1) {
  return R"({"event":"policy","actor":"actor-1","learner":")" + learner + R"(","connection":)" +
         std::to_string(connection) + R"(,"version":)" + std::to_string(version) + "}";
}

TEST(HistoryViolations, AFragmentIsAcceptedOnceByWhicheverLearner) {
  EXPECT_THAT(Violations(HistoryOf(
                  {FragmentEvent(1, "accepted"), FragmentEvent(1, "duplicate"), FragmentEvent(2, "accepted")})),
              IsEmpty());
  EXPECT_THAT(Violations(HistoryOf({FragmentEvent(1, "accepted"), FragmentEvent(1, "accepted", 2)})),
              ElementsAre("batch 1 of actor-1 generation 7 was accepted twice"));
}

TEST(HistoryViolations, ARankHasOneLiveMember) {
  const std::string leave = R"({"event":"expire","member":"learner-0"})";
  EXPECT_THAT(Violations(HistoryOf({Join("learner-0", 1, "learner"), leave, Join("learner-0", 2, "learner")})),
              IsEmpty());
  EXPECT_THAT(Violations(HistoryOf({Join("learner-0", 1, "learner"), Join("learner-9", 2, "learner")})),
              ElementsAre("learner-9 joined as rank 0, as which learner-0 lives"));
  EXPECT_THAT(Violations(HistoryOf({Join("actor-1", 1, "actor"), Join("actor-2", 1, "actor")})),
              ElementsAre("generation 1 was given out twice"));
}

TEST(HistoryViolations, BarrierGenerationsRiseAndOpenOnce) {
  EXPECT_THAT(Violations(HistoryOf({Pass("actor-1", 1, "actor-1 actor-2"), Pass("actor-2", 1, "actor-1 actor-2"),
                                    Pass("actor-1", 3, "actor-1")})),
              IsEmpty());
  EXPECT_THAT(Violations(HistoryOf({Pass("actor-1", 2, "actor-1"), Pass("actor-1", 1, "actor-1")})),
              ElementsAre("barrier b generation 1 opened after generation 2"));
  EXPECT_THAT(Violations(HistoryOf({Pass("actor-1", 2, "actor-1"), Pass("actor-2", 2, "actor-2")})),
              ElementsAre(HasSubstr("opened for actor-1 and again for actor-2")));
  // A learner that joins makes all of them count anew.
  EXPECT_THAT(Violations(HistoryOf({Pass("learner-0", 5, "learner-0"), Join("learner-1", 1, "learner", 1),
                                    Pass("learner-0", 1, "learner-0 learner-1")})),
              IsEmpty());
}

TEST(HistoryViolations, PolicyVersionsRiseUnlessALearnerStarted) {
  EXPECT_THAT(Violations(HistoryOf({Policy(3), Policy(3), Policy(4), Policy(2, "b:2")})), IsEmpty());
  EXPECT_THAT(Violations(HistoryOf({Policy(3), Policy(2)})), ElementsAre("actor-1 got policy 2 after 3"));
  EXPECT_THAT(Violations(HistoryOf({Policy(3), R"({"event":"learner"})", Policy(2)})), IsEmpty());
  // What the dead one sent arrives late, and then the new one is heard of.
  EXPECT_THAT(Violations(HistoryOf({Policy(3), R"({"event":"learner"})", Policy(4), Policy(2, "a:1", 2)})), IsEmpty());
  EXPECT_THAT(Violations(HistoryOf({Policy(3), R"({"event":"learner"})", Policy(2, "a:1", 2), Policy(1, "a:1", 2)})),
              ElementsAre("actor-1 got policy 1 after 2"));
  // A new connection begins with the last two.
  EXPECT_THAT(Violations(HistoryOf({Policy(3), Policy(2, "a:1", 2), Policy(3, "a:1", 2)})), IsEmpty());
  EXPECT_THAT(Violations(HistoryOf({Policy(3), Policy(1, "a:1", 2)})), ElementsAre("actor-1 got policy 1 after 3"));
}

TEST(HistoryViolations, AccountsBalanceAndNoMoreIsTrainedOnThanWasAccepted) {
  const std::string balanced = R"({"event":"account","collected":30,"trained":10,"stale":10,"lost":10})";
  const std::string trained = R"({"event":"trained","env_steps":10})";
  EXPECT_THAT(Violations(HistoryOf({FragmentEvent(1, "accepted"), trained, balanced})), IsEmpty());
  EXPECT_THAT(Violations(HistoryOf({FragmentEvent(1, "stale"), trained, balanced})),
              ElementsAre("trained on 10 steps and accepted 0"));
  EXPECT_THAT(Violations(HistoryOf({R"({"event":"account","collected":30,"trained":20})"})),
              ElementsAre("an account has 30 steps collected, and fates of 20"));
}

TEST(ReadHistory, MergesProcessesByTimeAndLeavesOutWhatWasCutOff) {
  const ScratchFolder folder;
  folder.Write("1.jsonl", "{\"t\":1,\"pid\":1,\"event\":\"a\"}\n{\"t\":3,\"pid\":1,\"event\":\"c\"}\n{\"t\":4,\"ev");
  folder.Write("2.jsonl", "{\"t\":2,\"pid\":2,\"event\":\"b\",\"rank\":5}\n");
  const std::vector<HistoryEvent> history = ReadHistory(folder.path());
  ASSERT_EQ(history.size(), 3u);
  EXPECT_EQ(history[0].event + history[1].event + history[2].event, "abc");
  EXPECT_EQ(history[1].Number("rank"), 5u);
  EXPECT_EQ(history[1].pid, 2u);
  EXPECT_THAT(ReadHistory(folder.path() + "/none"), IsEmpty());
}

TEST(ReadHistory, ALineThatIsNoEventFailsTheTest) {
  const ScratchFolder folder;
  folder.Write("1.jsonl", "nonsense\n");
  EXPECT_NONFATAL_FAILURE(ReadHistory(folder.path()), "nonsense");
  EXPECT_NONFATAL_FAILURE(ExpectInvariants(HistoryOf({Policy(3), Policy(2)})), "1 breaches");
}

}  // namespace
}  // namespace skein
