// SPDX-License-Identifier: Apache-2.0
#include "cli/history_check.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

using Breaches = std::vector<std::string>;

class ExactlyOnce {
 public:
  // Whether it breaks the rule.
  bool See(const HistoryEvent& event, Breaches* breaches) {
    if (event.event != "batch" || event.Text("result") != "accepted") return false;
    const std::string actor = event.Text("actor");
    const uint64_t generation = event.Number("generation"), sequence = event.Number("sequence");
    if (accepted_[{actor, generation}].insert(sequence).second) return false;
    breaches->push_back(
        absl::StrCat("batch ", sequence, " of ", actor, " generation ", generation, " was accepted twice"));
    return true;
  }

 private:
  std::map<std::pair<std::string, uint64_t>, std::set<uint64_t>> accepted_;  // Sequences, by actor and generation.
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
    if (event.event == "learner") ++learners_;
    if (event.event != "policy") return;
    const uint64_t connection = event.Number("connection"), version = event.Number("version");
    const auto [it, first] =
        newest_.try_emplace({event.pid, event.Text("learner")}, Newest{connection, version, learners_});
    Newest& newest = it->second;
    if (first) return;
    // A new connection begins with the two newest versions, of which the actor may have had the second.
    const bool connects = connection != newest.connection;
    const bool falls = version + (connects ? 1 : 0) < newest.version;
    if (falls && learners_ == newest.learners) {
      breaches->push_back(absl::StrCat(event.Text("actor"), " got policy ", version, " after ", newest.version));
    }
    // After the next learner has started, messages of a dead one over its old connection count for the old one.
    newest = {connection, version, connects || falls ? learners_ : newest.learners};
  }

 private:
  struct Newest {
    uint64_t connection = 0, version = 0;
    uint64_t learners = 0;  // That had started when the versions began to rise.
  };
  uint64_t learners_ = 0;
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

struct Line {
  double seconds = 0;
  std::string text;
};

std::optional<HistoryEvent> ParseEvent(const std::string& text) {
  nlohmann::json fields = nlohmann::json::parse(text, nullptr, false);
  if (!fields.is_object()) return std::nullopt;
  const auto seconds = fields.find("t"), pid = fields.find("pid"), event = fields.find("event");
  const bool whole = seconds != fields.end() && seconds->is_number() && pid != fields.end() &&
                     pid->is_number_unsigned() && event != fields.end() && event->is_string();
  if (!whole) return std::nullopt;
  HistoryEvent parsed = {seconds->get<double>(), pid->get<uint64_t>(), event->get<std::string>(), {}};
  parsed.fields = std::move(fields);
  return parsed;
}

// Adds the file's lines; the first that is no event, or empty.
std::string ReadLines(const std::filesystem::path& path, std::vector<Line>* lines) {
  std::ifstream file(path);
  std::string text, bad;
  for (int number = 1; std::getline(file, text); ++number) {
    if (file.eof()) break;  // Without its newline: cut off, or still being written.
    if (const auto event = ParseEvent(text)) {
      lines->push_back({event->seconds, text});
    } else if (bad.empty()) {
      bad = absl::StrCat(path.string(), ": line ", number, " is no event: ", text.substr(0, 100));
    }
  }
  return bad;
}

}  // namespace

uint64_t HistoryEvent::Number(const char* name) const {
  const auto it = fields.find(name);
  return it != fields.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

std::string HistoryEvent::Text(const char* name) const {
  const auto it = fields.find(name);
  return it != fields.end() && it->is_string() ? it->get<std::string>() : "";
}

absl::Status ReadHistory(const std::string& folder, const std::function<void(const HistoryEvent&)>& see) {
  std::vector<Line> lines;
  std::string bad;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".jsonl") continue;
    const std::string first = ReadLines(it->path(), &lines);
    if (bad.empty()) bad = first;
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, " cannot be read: ", error.message()));
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.seconds < b.seconds; });
  for (const Line& line : lines) see(*ParseEvent(line.text));
  if (!bad.empty()) return absl::DataLossError(bad);
  if (lines.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no history in ", folder, ": start the processes with SKEIN_HISTORY=", folder));
  }
  return absl::OkStatus();
}

struct HistoryChecker::Rules {
  ExactlyOnce exactly_once;
  PolicyVersions versions;
  std::map<uint64_t, Members> members;  // These by process.
  std::map<uint64_t, Openings> openings;
  std::map<uint64_t, Steps> steps;
};

HistoryChecker::HistoryChecker() : rules_(std::make_unique<Rules>()) {}
HistoryChecker::~HistoryChecker() = default;

void HistoryChecker::See(const HistoryEvent& event) {
  if (events_.empty()) first_seconds_ = event.seconds;
  last_seconds_ = event.seconds;
  ++events_[event.event];
  if (event.event == "batch") ++batches_[event.Text("result")];
  pids_.insert(event.pid);
  if (rules_->exactly_once.See(event, &breaches_)) ++accepted_again_;
  rules_->versions.See(event, &breaches_);
  rules_->members[event.pid].See(event, &breaches_);
  rules_->openings[event.pid].See(event, &breaches_);
  rules_->steps[event.pid].See(event, &breaches_);
}

}  // namespace skein
