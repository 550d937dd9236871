// SPDX-License-Identifier: Apache-2.0
// What verbs print with --json: one document each, with the fields that docs/command-line.md names.
#include "nlohmann/json.hpp"

#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/clock.h"
#include "base/process/file.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "launch/coordinator_addresses.h"
#include "skein/v1/status.pb.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using nlohmann::json;

std::string BinFolder() {
  const char* bin = std::getenv("SKEIN_BIN");
  return bin == nullptr ? ProgramFolder() + "/.." : std::string(bin);
}

// Standard output of a command, which must end with code 0, as one JSON document.
json Document(const std::string& command) {
  const ScratchFolder folder;
  const std::string line = absl::StrCat(BinFolder(), "/", command, " >", folder.path(), "/out");
  auto process = Subprocess::Spawn({.argv = {"/bin/sh", "-c", line}, .output_path = folder.path() + "/error"});
  EXPECT_TRUE(process.ok()) << process.status();
  EXPECT_EQ((*process)->Wait(absl::Seconds(50)), 0) << command << ": " << folder.Read("error");
  json document = json::parse(folder.Read("out"), nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << command << ": " << folder.Read("out");
  return document;
}

// The fields in the row of `verb` of the table in docs/command-line.md: between backticks, up to what is in brackets.
std::set<std::string> DocumentedFields(const std::string& verb) {
  const std::string text = ReadFile("docs/command-line.md").value_or("");
  const std::string row = absl::StrCat("\n| `", verb, "` | ");
  const size_t begin = text.find(row, text.find("<!-- json-fields -->"));
  EXPECT_NE(begin, std::string::npos) << verb;
  const std::string line = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
  const std::vector<std::string> cells = absl::StrSplit(line, " | ");
  const std::vector<std::string> parts = absl::StrSplit(cells.at(2), '`');
  std::set<std::string> fields;
  for (size_t i = 1; i < parts.size(); i += 2) {
    if (parts[i].find_first_of(" -") == std::string::npos) fields.insert(parts[i]);
  }
  return fields;
}

std::set<std::string> FieldsOf(const json& object) {
  std::set<std::string> fields;
  for (const auto& [name, value] : object.items()) fields.insert(name);
  return fields;
}

// Leaves of a program's verbs that the help shows, as "skein-bench env"; `flags`: whether they have some, and --json.
void AddVerbs(const json& command, const std::string& path, std::map<std::string, std::pair<bool, bool>>* verbs) {
  for (const json& verb : command["verbs"]) {
    if (!verb["hidden"]) AddVerbs(verb, absl::StrCat(path, " ", verb["name"].get<std::string>()), verbs);
  }
  if (!command["verbs"].empty()) return;
  const bool has_json = absl::StrContains(command["flags"].dump(), "\"--json");
  (*verbs)[path] = {!command["flags"].empty(), has_json};
}

TEST(JsonOutput, EveryVerbThatPrintsResultsHasTheFlag) {
  const std::set<std::string> print_none = {"skein worker", "skein completion", "skein-policy serve",
                                            "skein-policy env serve"};
  for (const std::string program : {"skein", "skein-bench", "skein-eval", "skein-fit", "skein-policy"}) {
    std::map<std::string, std::pair<bool, bool>> verbs;
    AddVerbs(Document(program + " --print-flags"), program, &verbs);
    ASSERT_FALSE(verbs.empty()) << program;
    for (const auto& [verb, has] : verbs) {
      if (!has.first) continue;  // Another program's, which is asked itself.
      EXPECT_EQ(has.second, print_none.count(verb) == 0) << verb;
    }
  }
}

TEST(JsonOutput, OfVerbsThatNeedNoRun) {
  const ScratchFolder folder;
  const json envs = Document("skein envs --json");
  ASSERT_TRUE(envs.is_array());
  EXPECT_EQ(FieldsOf(envs.at(0)), DocumentedFields("skein envs"));
  const json made = Document(absl::StrCat("skein certs init ", folder.path(), "/credentials --json"));
  EXPECT_EQ(FieldsOf(made), DocumentedFields("skein certs init"));
  EXPECT_EQ(made["folder"], folder.path() + "/credentials");
  const json evaluation = Document("skein eval --env CartPole-v1 --baseline random --episodes 2 --json");
  EXPECT_EQ(FieldsOf(evaluation), DocumentedFields("skein eval"));
  EXPECT_EQ(evaluation["episodes"], 2);
  const json check = Document("skein env check CartPole-v1 --seconds 1 --json");
  EXPECT_EQ(FieldsOf(check), DocumentedFields("skein env check"));
  EXPECT_EQ(check["ok"], true);
  const json bench = Document("skein bench env --env CartPole-v1 --rounds 1 --seconds 0.05 --json");
  EXPECT_EQ(FieldsOf(bench), DocumentedFields("skein bench VERB"));
}

TEST(JsonOutput, OfATraining) {
  const ScratchFolder folder;
  const std::string command = absl::StrCat(
      "skein train --env CartPole-v1 --steps 2048 --set eval.episodes=2 --runners 2 --json --runs-dir ", folder.path());
  const json trained = Document(command);
  EXPECT_EQ(FieldsOf(trained), DocumentedFields("skein train`, `skein head"));
  EXPECT_GE(trained["env_steps"], 2048);
  EXPECT_EQ(trained["exit_code"], 0);
  EXPECT_EQ(FieldsOf(trained["evaluation"]), DocumentedFields("skein eval"));
  EXPECT_EQ(trained["evaluation"]["digest"], trained["digest"]);

  const std::string where = absl::StrCat(" --json --runs-dir ", folder.path()), run = " CartPole-v1-s1";
  const json runs = Document("skein runs list" + where);
  EXPECT_EQ(FieldsOf(runs.at(0)), DocumentedFields("skein runs list"));
  EXPECT_EQ(runs.at(0)["digest"], trained["digest"]);
  EXPECT_EQ(Document("skein runs show" + run + where), runs.at(0));
  EXPECT_EQ(FieldsOf(Document("skein runs compare" + run + run + where)), DocumentedFields("skein runs compare"));
  const json plotted = Document("skein runs plot" + run + where + " --metric env_steps");
  EXPECT_EQ(FieldsOf(plotted), DocumentedFields("skein runs plot"));
  EXPECT_EQ(plotted["curves"][0]["points"].back().at(1), trained["env_steps"]);
  const json exported = Document(absl::StrCat("skein export --format c --json --checkpoint ", folder.path(),
                                              "/CartPole-v1-s1 --out ", folder.path(), "/policy.h"));
  EXPECT_EQ(FieldsOf(exported), DocumentedFields("skein export"));
  EXPECT_EQ(exported["digest"], trained["digest"]);
  EXPECT_EQ(exported["bytes"], folder.Read("policy.h").size());
  EXPECT_EQ(Document("skein runs remove --yes" + run + where)["removed"].at(0), "CartPole-v1-s1");
  EXPECT_TRUE(Document("skein runs list" + where).empty());
}

TEST(JsonOutput, OfAModelOfSequences) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 3 == 0 ? "1 2 3 4\n" : "1 2 3 3 4\n";
  const std::string data = folder.Write("data", text + "\n"), run = folder.path() + "/run";
  for (const char* learners : {"1", "2"}) {
    const json fit = Document(absl::StrCat("skein fit --json --resume never --port -1 --set train.epochs=2 --data ",
                                           data, " --run-dir ", run, " --learners ", learners));
    EXPECT_EQ(FieldsOf(fit), DocumentedFields("skein fit"));
    EXPECT_EQ(fit["run_directory"], run);
    EXPECT_EQ(fit["finished"], true);
    EXPECT_EQ(fit["epochs"], 2);
    EXPECT_GT(fit["held_out_loss"], 0);
    EXPECT_EQ(fit["limit"]["rule"], "probability");
    EXPECT_GT(fit["limit"]["probability"], 0);
    EXPECT_EQ(fit["digest"], Document("skein runs show run --json --runs-dir " + folder.path())["digest"]);
  }
  const std::string errors = folder.path() + "/errors";
  const std::string one = folder.Write("one", "1 2 3 9 4\n");
  const json verdict = Document(absl::StrCat("skein detect --json --checkpoint ", run, " --data ", one, " 2>", errors));
  EXPECT_EQ(FieldsOf(verdict), DocumentedFields("skein detect"));
  const json summary = json::parse(folder.Read("errors"), nullptr, false);
  ASSERT_TRUE(summary.is_object()) << folder.Read("errors");
  EXPECT_EQ(summary["sequences"], 1);
  EXPECT_EQ(summary["anomalous"], 1);
  EXPECT_EQ(summary["unknown_keys"], 1);
  EXPECT_TRUE(summary["top_g"].is_null());
}

TEST(JsonOutput, OfVerbsThatAskARun) {
  const ScratchFolder folder;
  auto coordinator = Subprocess::Spawn({.argv = {BinFolder() + "/skein-coordinator", "--listen", "127.0.0.1:0",
                                                 "--http", "127.0.0.1:0", "--store", "none"},
                                        .capture_stdout = true});
  ASSERT_TRUE(coordinator.ok()) << coordinator.status();
  const auto addresses = ParseCoordinatorLine((*coordinator)->ReadLine(absl::Seconds(30)).value_or(""));
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  auto actor = Subprocess::Spawn({.argv = {BinFolder() + "/skein-actor", "--coordinator", addresses->grpc},
                                  .output_path = folder.path() + "/actor"});
  ASSERT_TRUE(actor.ok()) << actor.status();

  std::set<std::string> fields;
  const auto* descriptor = v1::StatusResponse::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (descriptor->field(i)->message_type() == nullptr) fields.insert(descriptor->field(i)->name());
  }
  json status;
  const absl::Duration deadline = MonotonicNow() + absl::Seconds(30);
  do {
    ASSERT_LT(MonotonicNow(), deadline) << folder.Read("actor");
    status = Document("skein status --json --address " + addresses->grpc);
  } while (!status.contains("members") || status["members"].empty());
  for (const std::string& field : fields) EXPECT_TRUE(status.contains(field)) << field;
  EXPECT_EQ(status["members"][0]["role"], "actor");
  const json top = Document("skein top --count 1 --json --address " + addresses->grpc);
  EXPECT_EQ(top["run_id"], status["run_id"]);

  const std::string member = status["members"][0]["member_id"];
  const json drained = Document(absl::StrCat("skein drain ", member, " --wait --json --address ", addresses->grpc));
  EXPECT_EQ(FieldsOf(drained), DocumentedFields("skein drain"));
  EXPECT_EQ(drained["has_left"], true);
  (*coordinator)->Signal(SIGTERM);
  EXPECT_EQ((*coordinator)->Wait(absl::Seconds(30)), 0);
}

}  // namespace
}  // namespace skein
