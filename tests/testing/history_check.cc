// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/history_check.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using Breaches = std::vector<std::string>;

class ExactlyOnce {
 public:
  void See(const HistoryEvent& event, Breaches* breaches) {
    if (event.event != "batch" || event.Text("result") != "accepted") return;
    const auto key = std::make_tuple(event.Text("actor"), event.Number("generation"), event.Number("sequence"));
    if (accepted_.insert(key).second) return;
    breaches->push_back(absl::StrCat("batch ", std::get<2>(key), " of ", std::get<0>(key), " generation ",
                                     std::get<1>(key), " was accepted twice"));
  }

 private:
  std::set<std::tuple<std::string, uint64_t, uint64_t>> accepted_;
};

// Of one coordinator process.
class Members {
 public:
  void See(const HistoryEvent& event, Breaches* breaches) {
    const bool joins = event.event == "join";
    if (!joins && event.event != "leave" && event.event != "expire") return;
    const std::string id = event.Text("member");
    if (!joins) {
      live_.erase(id);
      return;
    }
    if (!generations_.insert(event.Number("generation")).second) {
      breaches->push_back(absl::StrCat("generation ", event.Number("generation"), " was given out twice"));
    }
    const std::string place = event.Text("role") == "learner" ? absl::StrCat("rank ", event.Number("rank")) : id;
    for (const auto& [other, its_place] : live_) {
      if (its_place == place)
        breaches->push_back(absl::StrCat(id, " joined as ", place, ", as which ", other, " lives"));
    }
    live_[id] = place;
  }

 private:
  std::map<std::string, std::string> live_;  // Rank, or id, by id.
  std::set<uint64_t> generations_;
};

// Of one coordinator process. Learners count from 1 again when one of them joins, and all do when none of a role is
// left.
class Openings {
 public:
  void See(const HistoryEvent& event, Breaches* breaches) {
    const std::string member = event.Text("member");
    if (event.event == "join") {
      if (event.Text("role") == "learner") Forget("learner");
      live_.insert(member);
    } else if (event.event == "leave" || event.event == "expire") {
      live_.erase(member);
      const std::string role = RoleOf(member);
      if (std::none_of(live_.begin(), live_.end(), [&](const auto& id) { return RoleOf(id) == role; })) Forget(role);
    } else if (event.event == "barrier") {
      Pass(event, breaches);
    }
  }

 private:
  static std::string RoleOf(const std::string& member) { return member.substr(0, member.find('-')); }
  void Forget(const std::string& role) {
    for (auto it = opened_.begin(); it != opened_.end();) it = it->first.first == role ? opened_.erase(it) : ++it;
  }
  void Pass(const HistoryEvent& event, Breaches* breaches) {
    const std::string name = event.Text("name");
    const uint64_t generation = event.Number("barrier_generation");
    auto [it, first] = opened_.try_emplace({RoleOf(event.Text("member")), name}, generation, event.Text("members"));
    auto& [newest, members] = it->second;
    if (first) return;
    if (generation < newest) {
      breaches->push_back(
          absl::StrCat("barrier ", name, " generation ", generation, " opened after generation ", newest));
    } else if (generation > newest) {
      it->second = {generation, event.Text("members")};
    } else if (members != event.Text("members")) {
      breaches->push_back(absl::StrCat("barrier ", name, " generation ", generation, " opened for ", members,
                                       " and again for ", event.Text("members")));
    }
  }

  std::set<std::string> live_;
  std::map<std::pair<std::string, std::string>, std::pair<uint64_t, std::string>> opened_;  // By role and name.
};

class PolicyVersions {
 public:
  void See(const HistoryEvent& event, Breaches* breaches) {
    if (event.event == "learner") newest_.clear();
    if (event.event != "policy") return;
    Newest& newest = newest_[{event.pid, event.Text("learner")}];
    const uint64_t version = event.Number("version");
    // A new connection begins with the two newest versions, of which the actor may have had the second.
    const bool connects = event.Number("connection") != newest.connection;
    if (version + (connects ? 1 : 0) < newest.version) {
      breaches->push_back(absl::StrCat(event.Text("actor"), " got policy ", version, " after ", newest.version));
    }
    newest = {event.Number("connection"), version};
  }

 private:
  struct Newest {
    uint64_t connection = 0, version = 0;
  };
  std::map<std::pair<uint64_t, std::string>, Newest> newest_;  // By the actor's pid and the learner.
};

// Of one learner process.
class Steps {
 public:
  void See(const HistoryEvent& event, Breaches* breaches) {
    if (event.event == "batch" && event.Text("result") == "accepted") accepted_ += event.Number("env_steps");
    if (event.event == "trained") trained_ += event.Number("env_steps");
    // A batch is recorded once its receipt is made, which may be a moment after it was trained on: at the end it
    // counts.
    if (event.event != "account") return;
    const uint64_t fates = event.Number("trained") + event.Number("stale") + event.Number("rejected") +
                           event.Number("lost") + event.Number("pending");
    if (event.Number("collected") != fates) {
      breaches->push_back(
          absl::StrCat("an account has ", event.Number("collected"), " steps collected, and fates of ", fates));
    }
    if (trained_ > accepted_) {
      breaches->push_back(absl::StrCat("trained on ", trained_, " steps and accepted ", accepted_));
    }
  }

 private:
  uint64_t accepted_ = 0, trained_ = 0;
};

}  // namespace

std::vector<HistoryEvent> ReadHistory(const std::string& folder) {
  std::vector<HistoryEvent> history;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".jsonl") continue;
    std::ifstream file(it->path());
    std::string line;
    while (std::getline(file, line)) {
      if (file.eof()) break;  // Without its newline: cut off, or still being written.
      const nlohmann::json fields = nlohmann::json::parse(line, nullptr, false);
      if (!fields.is_object() || !fields.contains("event")) {
        ADD_FAILURE() << it->path() << ": " << line;
        continue;
      }
      history.push_back({fields.value("t", 0.0), fields.value("pid", uint64_t{0}), fields.at("event"), fields});
    }
  }
  std::stable_sort(history.begin(), history.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return history;
}

std::vector<std::string> Violations(const std::vector<HistoryEvent>& history) {
  Breaches breaches;
  ExactlyOnce exactly_once;
  PolicyVersions versions;
  std::map<uint64_t, Members> members;
  std::map<uint64_t, Openings> openings;
  std::map<uint64_t, Steps> steps;
  for (const HistoryEvent& event : history) {
    exactly_once.See(event, &breaches);
    versions.See(event, &breaches);
    members[event.pid].See(event, &breaches);
    openings[event.pid].See(event, &breaches);
    steps[event.pid].See(event, &breaches);
  }
  return breaches;
}

void ExpectInvariants(const std::vector<HistoryEvent>& history) {
  const std::vector<std::string> breaches = Violations(history);
  EXPECT_TRUE(breaches.empty()) << breaches.size() << " breaches in the history\n  " << absl::StrJoin(breaches, "\n  ");
}

}  // namespace skein
