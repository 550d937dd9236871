// SPDX-License-Identifier: Apache-2.0
#include "coordinator/history.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "nlohmann/json.hpp"

namespace skein {
namespace {

// Of actors that know their limit.
double Efficiency(const v1::StatusResponse& status) {
  double rate = 0, limit = 0;
  for (const v1::MemberStatus& member : status.members()) {
    const v1::MemberReport& report = member.report();
    if (member.role() != "actor" || !(report.limit_env_steps_per_second() > 0)) continue;
    rate += report.env_steps_per_second();
    limit += report.limit_env_steps_per_second();
  }
  return limit > 0 ? rate / limit : std::numeric_limits<double>::quiet_NaN();
}

using Points = std::vector<const History::Point*>;

template <typename Get>
nlohmann::json Column(const Points& points, Get get) {
  nlohmann::json column = nlohmann::json::array();
  for (const History::Point* point : points) column.push_back(get(*point));
  return column;
}

nlohmann::json StageColumns(const Points& points, History::StageSeconds History::Point::*stages) {
  nlohmann::json columns = nlohmann::json::object();
  if (points.empty()) return columns;
  for (const auto& [stage, last] : points.back()->*stages) {
    columns[stage] = Column(points, [&, stages, name = stage](const History::Point& point) {
      const auto found = (point.*stages).find(name);
      return found == (point.*stages).end() ? 0.0 : found->second;
    });
  }
  return columns;
}

}  // namespace

void History::Add(const v1::StatusResponse& status, MonotonicTime now) {
  AddStages(status);
  const v1::RunProgress& progress = status.progress();
  newest_.seconds = absl::ToDoubleSeconds(now);
  newest_.env_steps = progress.env_steps();
  newest_.rate_10s = progress.env_steps_per_second_10s();
  newest_.rate_60s = progress.env_steps_per_second_60s();
  newest_.episode_return = progress.mean_episode_return();
  newest_.policy_lag = progress.mean_policy_lag();
  newest_.actors = static_cast<int>(std::count_if(status.members().begin(), status.members().end(),
                                                  [](const v1::MemberStatus& m) { return m.role() == "actor"; }));
  newest_.efficiency = Efficiency(status);
  if (added_++ % stride_ != 0) return;
  points_.push_back(newest_);
  if (points_.size() <= kMostPoints) return;
  // Every other one goes; the first stays.
  for (size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = std::move(points_[2 * i]);
  points_.resize((points_.size() + 1) / 2);
  stride_ *= 2;
}

void History::AddStages(const v1::StatusResponse& status) {
  std::set<std::pair<std::string, uint64_t>> live;
  for (const v1::MemberStatus& member : status.members()) {
    const auto key = std::make_pair(member.member_id(), member.generation());
    live.insert(key);
    StageSeconds& total = member.role() == "actor" ? newest_.actor_stages : newest_.learner_stages;
    StageSeconds& reported = reported_[key];
    for (const auto& [stage, seconds] : member.report().stage_seconds()) {
      // Time before its first report to this coordinator does not count.
      const auto [before, first] = reported.try_emplace(stage, seconds);
      total[stage] += first ? 0 : std::max(seconds - before->second, 0.0);
      before->second = seconds;
    }
  }
  for (auto it = reported_.begin(); it != reported_.end();) {
    it = live.count(it->first) > 0 ? std::next(it) : reported_.erase(it);
  }
}

std::string HistoryJson(const History& history, size_t count) {
  const std::vector<History::Point>& kept = history.points();
  Points points;
  for (size_t i = kept.size() - std::min(kept.size(), count); i < kept.size(); ++i) points.push_back(&kept[i]);
  if (!kept.empty() && history.newest().seconds > kept.back().seconds) points.push_back(&history.newest());
  nlohmann::json json;
  json["stride"] = history.stride();
  json["points"] = kept.size();
  json["seconds"] = Column(points, [](const History::Point& p) { return p.seconds; });
  json["env_steps"] = Column(points, [](const History::Point& p) { return p.env_steps; });
  json["rate_10s"] = Column(points, [](const History::Point& p) { return p.rate_10s; });
  json["rate_60s"] = Column(points, [](const History::Point& p) { return p.rate_60s; });
  json["return"] = Column(points, [](const History::Point& p) { return p.episode_return; });
  json["policy_lag"] = Column(points, [](const History::Point& p) { return p.policy_lag; });
  json["actors"] = Column(points, [](const History::Point& p) { return p.actors; });
  json["efficiency"] = Column(points, [](const History::Point& p) { return p.efficiency; });
  json["actor_stages"] = StageColumns(points, &History::Point::actor_stages);
  json["learner_stages"] = StageColumns(points, &History::Point::learner_stages);
  // Names of stages may come from anywhere: what is not UTF-8 is replaced, not thrown.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace skein
