// SPDX-License-Identifier: Apache-2.0
#include "coordinator/history.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "absl/strings/str_format.h"
#include "coordinator/message_bounds.h"
#include "coordinator/state_records.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using Point = History::Point;
constexpr uint64_t kMostStride = uint64_t{1} << 32;  // Seconds.
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// What a point consists of: the names are those of HistoryJson() and of store::HistoryRecord.
constexpr struct {
  const char* name;
  double Point::*value;
} kScalars[] = {
    {"seconds", &Point::seconds},       {"env_steps", &Point::env_steps},   {"rate_10s", &Point::rate_10s},
    {"rate_60s", &Point::rate_60s},     {"return", &Point::episode_return}, {"episode_length", &Point::episode_length},
    {"policy_lag", &Point::policy_lag}, {"actors", &Point::actors},         {"efficiency", &Point::efficiency}};
constexpr struct {
  const char* name;
  History::Numbers Point::*numbers;
  double absent;  // Of a point that lacks a name that others have.
} kGroups[] = {{"actor_stages", &Point::actor_stages, 0},
               {"learner_stages", &Point::learner_stages, 0},
               {"update_stats", &Point::update_stats, kNone},
               {"episode_metrics", &Point::episode_metrics, kNone},
               {"callback_metrics", &Point::callback_metrics, kNone}};

// Of actors that know their limit.
double Efficiency(const v1::StatusResponse& status) {
  double rate = 0, limit = 0;
  for (const v1::MemberStatus& member : status.members()) {
    const v1::MemberReport& report = member.report();
    if (member.role() != "actor" || !(report.limit_env_steps_per_second() > 0)) continue;
    rate += report.env_steps_per_second();
    limit += report.limit_env_steps_per_second();
  }
  return limit > 0 ? rate / limit : kNone;
}

using Points = std::vector<const Point*>;

double Get(const History::Numbers& numbers, const std::string& name, double absent) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? absent : found->second;
}

// Of all points together. Of the newest points first if there are too many, as only a faulty learner has.
std::set<std::string> NamesOf(const Points& points, History::Numbers Point::*numbers) {
  std::set<std::string> names;
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    for (const auto& [name, value] : (*point)->*numbers) {
      if (names.size() < kMostNumbers) names.insert(name);
    }
  }
  return names;
}

// To six digits, so that it is short as text; whole numbers stay as they are.
double Rounded(double value) {
  if (!std::isfinite(value) || value == std::round(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * scale) / scale;
  return std::isfinite(rounded) ? rounded : value;
}

void AddColumn(const std::string& group, const std::string& name, const Points& points, double absent,
               store::HistoryRecord* record, History::Numbers Point::*numbers) {
  store::HistoryColumn& column = *record->add_columns();
  column.set_group(group);
  column.set_name(name);
  for (const Point* point : points) column.add_values(Get(point->*numbers, name, absent));
}

store::HistoryRecord RecordOf(const Points& points) {
  store::HistoryRecord record;
  for (const auto& [name, value] : kScalars) {
    store::HistoryColumn& column = *record.add_columns();
    column.set_name(name);
    for (const Point* point : points) column.add_values(point->*value);
  }
  for (const auto& [group, numbers, absent] : kGroups) {
    for (const std::string& name : NamesOf(points, numbers)) {
      AddColumn(group, name, points, absent, &record, numbers);
    }
  }
  return record;
}

// The points of a record; empty: its columns differ in length.
std::vector<Point> PointsOf(const store::HistoryRecord& record) {
  std::vector<Point> points;
  for (const store::HistoryColumn& column : record.columns()) {
    if (points.empty()) points.resize(std::min<size_t>(column.values_size(), History::kPointsPerRecord));
    if (static_cast<size_t>(column.values_size()) != points.size()) return {};
    for (size_t i = 0; i < points.size(); ++i) {
      const double value = column.values(static_cast<int>(i));
      for (const auto& [name, member] : kScalars) {
        if (column.group().empty() && column.name() == name) points[i].*member = value;
      }
      for (const auto& [group, numbers, absent] : kGroups) {
        if (column.group() == group && !std::isnan(value)) (points[i].*numbers)[column.name()] = value;
      }
    }
  }
  return points;
}

}  // namespace

void History::Add(const v1::StatusResponse& status, MonotonicTime now) {
  AddStages(status);
  const v1::RunProgress& progress = status.progress();
  newest_.seconds = start_seconds_ + absl::ToDoubleSeconds(now);
  newest_.env_steps = static_cast<double>(progress.env_steps());
  newest_.rate_10s = progress.env_steps_per_second_10s();
  newest_.rate_60s = progress.env_steps_per_second_60s();
  const bool has_episodes = progress.episodes() > 0;  // Without a learner both are 0.
  newest_.episode_return = has_episodes ? progress.mean_episode_return() : kNone;
  newest_.episode_length = has_episodes ? progress.mean_episode_length() : kNone;
  newest_.policy_lag = progress.mean_policy_lag();
  newest_.actors =
      static_cast<double>(std::count_if(status.members().begin(), status.members().end(),
                                        [](const v1::MemberStatus& member) { return member.role() == "actor"; }));
  newest_.efficiency = Efficiency(status);
  newest_.update_stats = Numbers(progress.losses().begin(), progress.losses().end());
  newest_.episode_metrics = Numbers(progress.episode_metrics().begin(), progress.episode_metrics().end());
  newest_.callback_metrics = Numbers(progress.callback_metrics().begin(), progress.callback_metrics().end());
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
    Numbers& total = member.role() == "actor" ? newest_.actor_stages : newest_.learner_stages;
    Numbers& reported = reported_[key];
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

std::vector<StateChange> History::TakeChanges(double unix_seconds) {
  std::vector<StateChange> changes;
  if (points_.size() == kept_points_ && stride_ == kept_stride_) return changes;
  // After thinning out every record is another one. Before, the last may have had room.
  const size_t first = stride_ == kept_stride_ ? kept_points_ / kPointsPerRecord : 0;
  const size_t records = (points_.size() + kPointsPerRecord - 1) / kPointsPerRecord;
  for (size_t i = first; i < records; ++i) {
    Points points;
    const size_t end = std::min(points_.size(), (i + 1) * kPointsPerRecord);
    for (size_t at = i * kPointsPerRecord; at < end; ++at) points.push_back(&points_[at]);
    store::HistoryRecord record = RecordOf(points);
    record.set_stride(stride_);
    record.set_unix_seconds(unix_seconds - start_seconds_);
    changes.push_back(PutHistory(i, record));
  }
  for (size_t i = records; i < kept_records_; ++i) changes.push_back(RemoveHistory(i));
  kept_points_ = points_.size();
  kept_stride_ = stride_;
  kept_records_ = records;
  return changes;
}

void History::Restore(const std::vector<store::HistoryRecord>& records, double unix_seconds, bool new_session) {
  kept_records_ = records.size();
  if (records.empty() || records.front().stride() - 1 >= kMostStride) return;
  stride_ = records.front().stride();
  for (const store::HistoryRecord& record : records) {
    if (record.stride() != stride_) continue;
    for (Point& point : PointsOf(record)) {
      const bool later = points_.empty() || point.seconds > points_.back().seconds;
      if (later && std::isfinite(point.seconds) && points_.size() < kMostPoints) points_.push_back(std::move(point));
    }
  }
  if (points_.empty()) return;
  added_ = points_.size() * stride_;
  newest_ = points_.back();
  const double next = newest_.seconds + absl::ToDoubleSeconds(kPeriod);
  const double elapsed = unix_seconds - records.front().unix_seconds();
  start_seconds_ = new_session || !std::isfinite(elapsed) ? next : std::max(next, elapsed);
}

std::string HistoryJson(const History& history, size_t count) {
  const std::vector<Point>& kept = history.points();
  Points points;
  for (size_t i = kept.size() - std::min(kept.size(), count); i < kept.size(); ++i) points.push_back(&kept[i]);
  if (!kept.empty() && history.newest().seconds > kept.back().seconds) points.push_back(&history.newest());
  nlohmann::json json;
  json["stride"] = history.stride();
  json["points"] = kept.size();
  for (const auto& [name, value] : kScalars) {
    nlohmann::json& column = json[name] = nlohmann::json::array();
    for (const Point* point : points) column.push_back(Rounded(point->*value));
  }
  for (const auto& [group, numbers, absent] : kGroups) {
    nlohmann::json& columns = json[group] = nlohmann::json::object();
    for (const std::string& name : NamesOf(points, numbers)) {
      nlohmann::json& column = columns[name] = nlohmann::json::array();
      for (const Point* point : points) column.push_back(Rounded(Get(point->*numbers, name, absent)));
    }
  }
  // Names may come from anywhere: what is not UTF-8 is replaced, not thrown.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace skein
