// SPDX-License-Identifier: Apache-2.0
#include "learner/report/event_log.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/telemetry/log.h"
#include "tensorboard/event.pb.h"

namespace skein {
namespace {

using tensorboard::Event;
using tensorboard::HistogramProto;

constexpr char kFilePrefix[] = "events.out.tfevents.";
constexpr int kBuckets = 30;
constexpr double kMaxChoices = 100;

Event EventAt(uint64_t env_steps, absl::Time now) {
  Event event;
  event.set_wall_time(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  event.set_step(static_cast<int64_t>(env_steps));
  return event;
}

void AddScalar(const std::string& tag, double value, Event* event) {
  if (!std::isfinite(value)) return;
  auto* const added = event->mutable_summary()->add_value();
  added->set_tag(tag);
  added->set_simple_value(static_cast<float>(value));
}

void AddHistogram(const std::string& tag, const std::vector<float>& values, bool whole, Event* event) {
  HistogramProto histogram = MakeHistogram(values, whole);
  if (histogram.num() == 0) return;
  auto* const added = event->mutable_summary()->add_value();
  added->set_tag(tag);
  *added->mutable_histo() = std::move(histogram);
}

// Upper ends of buckets from `min` to `max`.
std::vector<double> Limits(double min, double max, bool whole) {
  std::vector<double> limits;
  if (whole && max - min < kMaxChoices) {
    for (double choice = min; choice < max; ++choice) limits.push_back(choice + 0.5);
  } else if (max > min) {
    for (int i = 1; i < kBuckets; ++i) limits.push_back(min + (max - min) * i / kBuckets);
  }
  limits.push_back(max);
  return limits;
}

}  // namespace

HistogramProto MakeHistogram(const std::vector<float>& values, bool whole) {
  HistogramProto histogram;
  std::vector<double> finite;
  finite.reserve(values.size());
  for (float value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  if (finite.empty()) return histogram;
  const auto [min, max] = std::minmax_element(finite.begin(), finite.end());
  const std::vector<double> limits = Limits(*min, *max, whole);
  std::vector<double> counts(limits.size());
  double sum = 0, sum_squares = 0;
  for (double value : finite) {
    sum += value;
    sum_squares += value * value;
    // The greatest value is the last limit.
    ++counts[static_cast<size_t>(std::lower_bound(limits.begin(), limits.end(), value) - limits.begin())];
  }
  histogram.set_min(*min);
  histogram.set_max(*max);
  histogram.set_num(static_cast<double>(finite.size()));
  histogram.set_sum(sum);
  histogram.set_sum_squares(sum_squares);
  histogram.mutable_bucket_limit()->Add(limits.begin(), limits.end());
  histogram.mutable_bucket()->Add(counts.begin(), counts.end());
  return histogram;
}

absl::Status EventLog::KeepUpTo(const std::string& folder, uint64_t env_steps) {
  const auto keep = [env_steps](const std::string& record) {
    Event event;
    return event.ParseFromString(record) && event.step() >= 0 && static_cast<uint64_t>(event.step()) <= env_steps;
  };
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!absl::StartsWith(it->path().filename().string(), kFilePrefix) || it->is_symlink(ignored) ||
        !it->is_regular_file(ignored)) {
      continue;
    }
    if (absl::Status s = EventFile::Trim(it->path(), keep); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& folder, uint64_t env_steps,
                                                         absl::Time now) {
  // TensorBoard reads a folder's files in the order of their names.
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  auto file = EventFile::Open(
      absl::StrFormat("%s/%s%010d.%s.%d", folder, kFilePrefix, absl::ToUnixSeconds(now), host, getpid()));
  if (!file.ok()) return file.status();
  Event version = EventAt(0, now);
  version.set_file_version("brain.Event:2");
  Event start = EventAt(env_steps + 1, now);  // The last iteration before stays.
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  for (const Event* event : {&version, &start}) {
    if (absl::Status s = (*file)->Append(event->SerializeAsString()); !s.ok()) return s;
  }
  return std::unique_ptr<EventLog>(new EventLog(*std::move(file), now));
}

void EventLog::LogIteration(const v1::RunProgress& progress, absl::Time now) {
  Event event = EventAt(progress.env_steps(), now);
  AddScalar("episode/return_mean", progress.mean_episode_return(), &event);
  AddScalar("episode/length_mean", progress.mean_episode_length(), &event);
  for (const auto& [name, value] : progress.episode_metrics()) {
    AddScalar(absl::StrCat("episode/", name), value, &event);
  }
  AddScalar("throughput/env_steps_per_second", progress.env_steps_per_second_10s(), &event);
  AddScalar("sync/policy_lag", progress.mean_policy_lag(), &event);
  for (const auto& [name, value] : progress.losses()) AddScalar(absl::StrCat("update/", name), value, &event);
  for (const auto& [name, value] : progress.callback_metrics()) {
    AddScalar(absl::StrCat("callback/", name), value, &event);
  }
  const double passed = absl::ToDoubleSeconds(now - logged_);
  for (const auto& [stage, seconds] : progress.stage_seconds()) {
    double& before = stage_seconds_[stage];
    if (passed > 0) AddScalar(absl::StrCat("learner_share/", stage), (seconds - before) / passed, &event);
    before = seconds;
  }
  logged_ = now;
  Write(event);
}

void EventLog::LogNumbers(const std::map<std::string, double>& numbers, uint64_t step, absl::Time now) {
  Event event = EventAt(step, now);
  for (const auto& [tag, value] : numbers) AddScalar(tag, value, &event);
  if (event.has_summary()) Write(event);
}

void EventLog::LogSamples(const UpdateSamples& samples, uint64_t env_steps, absl::Time now) {
  sampled_ = now;
  Event event = EventAt(env_steps, now);
  const auto size = static_cast<size_t>(samples.action_size);
  if (size == 1) {
    AddHistogram("samples/action", samples.action, samples.discrete, &event);
  } else {
    for (size_t i = 0; i < size && i < kMaxActions; ++i) {
      std::vector<float> numbers;
      for (size_t at = i; at < samples.action.size(); at += size) numbers.push_back(samples.action[at]);
      AddHistogram(absl::StrFormat("samples/action_%02d", i), numbers, samples.discrete, &event);
    }
  }
  for (const auto& [name, values] : samples.stats) AddHistogram(absl::StrCat("samples/", name), values, false, &event);
  if (event.has_summary()) Write(event);
}

void EventLog::Write(const Event& event) {
  const absl::Status written = file_->Append(event.SerializeAsString());
  if (written.ok() || failed_) return;
  failed_ = true;
  spdlog::warn("TensorBoard will not see everything: {}", std::string(written.message()));
}

}  // namespace skein
