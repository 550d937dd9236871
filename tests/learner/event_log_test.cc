// SPDX-License-Identifier: Apache-2.0
#include "learner/report/event_log.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tensorboard/event.pb.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using tensorboard::Event;
using tensorboard::HistogramProto;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const absl::Time kStart = absl::FromUnixSeconds(1700000000);

class EventLogTest : public testing::Test {
 protected:
  EventLogTest() : folder_(fs::path(testing::TempDir()) / ("event_log_test." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~EventLogTest() override { fs::remove_all(folder_); }

  std::unique_ptr<EventLog> Open(uint64_t env_steps = 0) {
    auto log = EventLog::Open(folder_, env_steps, kStart);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }

  // Of the folder's only file; checksums are not looked at.
  std::vector<Event> Events() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    EXPECT_THAT(files, SizeIs(1));
    const std::string text = ReadFile(files.front()).value_or("");
    std::vector<Event> events;
    for (size_t at = 0; at < text.size();) {
      uint64_t size = 0;
      std::memcpy(&size, text.data() + at, sizeof(size));
      EXPECT_TRUE(events.emplace_back().ParseFromString(text.substr(at + 12, size)));
      at += 16 + size;
    }
    return events;
  }

  const fs::path folder_;
};

std::map<std::string, float> Scalars(const Event& event) {
  std::map<std::string, float> scalars;
  for (const auto& value : event.summary().value()) scalars[value.tag()] = value.simple_value();
  return scalars;
}

std::map<std::string, HistogramProto> Histograms(const Event& event) {
  std::map<std::string, HistogramProto> histograms;
  for (const auto& value : event.summary().value()) histograms[value.tag()] = value.histo();
  return histograms;
}

TEST_F(EventLogTest, AFileSaysItsVersionAndWhereItStarts) {
  Open(5000);
  const std::vector<Event> events = Events();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 1700000000);
  EXPECT_EQ(events[1].step(), 5001);  // From there on earlier files do not count.
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_THAT(fs::directory_iterator(folder_)->path().filename().string(),
              testing::StartsWith("events.out.tfevents.1700000000."));
}

TEST_F(EventLogTest, AnIterationIsItsFiguresAtItsEnvSteps) {
  const auto log = Open();
  v1::RunProgress progress;
  progress.set_env_steps(4096);
  progress.set_mean_episode_return(21.5);
  progress.set_mean_episode_length(22);
  (*progress.mutable_episode_metrics())["success"] = 0.25;
  (*progress.mutable_callback_metrics())["to_go"] = 3;
  progress.set_env_steps_per_second_10s(1000);
  progress.set_mean_policy_lag(1);
  (*progress.mutable_losses())["kl"] = 0.5;
  (*progress.mutable_stage_seconds())["update"] = 1;
  log->LogIteration(progress, kStart + absl::Seconds(4));
  progress.set_env_steps(8192);
  (*progress.mutable_stage_seconds())["update"] = 4;
  log->LogIteration(progress, kStart + absl::Seconds(8));

  const std::vector<Event> events = Events();
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_EQ(events[2].step(), 4096);
  EXPECT_EQ(events[2].wall_time(), 1700000004);
  const std::map<std::string, float> expected = {
      {"episode/return_mean", 21.5f}, {"episode/length_mean", 22},
      {"episode/success", 0.25f},     {"throughput/env_steps_per_second", 1000},
      {"sync/policy_lag", 1},         {"update/kl", 0.5f},
      {"callback/to_go", 3},          {"learner_share/update", 0.25f}};  // 1 s of 4.
  EXPECT_EQ(Scalars(events[2]), expected);
  EXPECT_EQ(events[3].step(), 8192);
  EXPECT_EQ(Scalars(events[3])["learner_share/update"], 0.75f);  // 3 s more of 4.
}

TEST_F(EventLogTest, WhatIsNotFiniteIsLeftOut) {
  const auto log = Open();
  v1::RunProgress progress;
  progress.set_mean_episode_return(kNaN);
  (*progress.mutable_losses())["kl"] = std::numeric_limits<double>::infinity();
  (*progress.mutable_stage_seconds())["update"] = 1;
  log->LogIteration(progress, kStart);  // No time has passed: no share.
  const std::vector<Event> events = Events();
  const std::map<std::string, float> expected = {
      {"episode/length_mean", 0}, {"throughput/env_steps_per_second", 0}, {"sync/policy_lag", 0}};
  EXPECT_EQ(Scalars(events.at(2)), expected);
}

TEST_F(EventLogTest, SamplesAreAHistogramForEachNumberOfAnAction) {
  const auto log = Open();
  UpdateSamples samples;
  samples.action = {1, 10, 2, 20, 3, 30};
  samples.action_size = 2;
  samples.stats = {{"advantage", {-1, 0, 1}}};
  log->LogSamples(samples, 4096, kStart);
  const std::vector<Event> events = Events();
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[2].step(), 4096);
  auto histograms = Histograms(events[2]);
  ASSERT_THAT(histograms, SizeIs(3));
  EXPECT_EQ(histograms["samples/action_00"].sum(), 6);
  EXPECT_EQ(histograms["samples/action_01"].sum(), 60);
  EXPECT_EQ(histograms["samples/advantage"].sum_squares(), 2);
  for (const auto& [tag, histogram] : histograms) {
    EXPECT_EQ(histogram.num(), 3);
    EXPECT_EQ(std::accumulate(histogram.bucket().begin(), histogram.bucket().end(), 0.0), 3) << tag;
  }
}

TEST_F(EventLogTest, LongActionsHaveTheirFirstNumbersOnly) {
  const auto log = Open();
  UpdateSamples samples;
  samples.action.assign(20, 1);
  samples.action_size = 20;
  log->LogSamples(samples, 1, kStart);
  EXPECT_THAT(Histograms(Events().at(2)), SizeIs(EventLog::kMaxActions));
}

TEST_F(EventLogTest, NoSamplesAreNoEvent) {
  const auto log = Open();
  log->LogSamples({}, 1, kStart);
  EXPECT_THAT(Events(), SizeIs(2));
}

TEST_F(EventLogTest, SamplesAreDueAtOnceAndThenEveryTenSeconds) {
  const auto log = Open();
  EXPECT_TRUE(log->SamplesDue(kStart));
  log->LogSamples({}, 1, kStart);
  EXPECT_FALSE(log->SamplesDue(kStart + absl::Seconds(9)));
  EXPECT_TRUE(log->SamplesDue(kStart + absl::Seconds(10)));
}

TEST_F(EventLogTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(EventLog::Open(folder_ / "none", 0, kStart).status().code(), absl::StatusCode::kNotFound);
}

// A limit on the size of files is a full disk.
TEST_F(EventLogTest, AFailureToWriteIsLoggedOnceAndIsNoHarm) {
  std::ostringstream said;
  const auto logger = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  const auto log = Open();
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit none = {1, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  v1::RunProgress progress;
  log->LogIteration(progress, kStart);
  log->LogIteration(progress, kStart);
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  progress.set_env_steps(7);
  log->LogIteration(progress, kStart);
  spdlog::set_default_logger(logger);
  const std::string text = said.str();
  const size_t first = text.find("TensorBoard");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("TensorBoard", first + 1), std::string::npos) << text;
  ASSERT_THAT(Events(), SizeIs(3));
  EXPECT_EQ(Events()[2].step(), 7);
}

TEST(MakeHistogram, ChoicesHaveABucketEach) {
  const HistogramProto histogram = MakeHistogram({0, 1, 1, 3, 3, 3}, true);
  EXPECT_THAT(histogram.bucket_limit(), ElementsAre(0.5, 1.5, 2.5, 3));
  EXPECT_THAT(histogram.bucket(), ElementsAre(1, 2, 0, 3));
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 3);
  EXPECT_EQ(histogram.sum(), 11);          // 0 + 2 + 9
  EXPECT_EQ(histogram.sum_squares(), 29);  // 0 + 2 + 27
}

TEST(MakeHistogram, RealNumbersHaveThirtyBucketsOfOneWidth) {
  std::vector<float> values;
  for (int i = 0; i <= 60; ++i) values.push_back(static_cast<float>(i));  // From 0 to 60: 2 wide.
  const HistogramProto histogram = MakeHistogram(values, false);
  ASSERT_EQ(histogram.bucket_size(), 30);
  ASSERT_EQ(histogram.bucket_limit_size(), 30);
  EXPECT_EQ(histogram.bucket_limit(0), 2);
  EXPECT_EQ(histogram.bucket_limit(29), 60);
  EXPECT_EQ(histogram.bucket(0), 3);  // 0, 1, 2
  for (int i = 1; i < 30; ++i) EXPECT_EQ(histogram.bucket(i), 2);
}

TEST(MakeHistogram, EqualValuesHaveOneBucket) {
  const HistogramProto histogram = MakeHistogram({2.5f, 2.5f}, false);
  EXPECT_THAT(histogram.bucket_limit(), ElementsAre(2.5));
  EXPECT_THAT(histogram.bucket(), ElementsAre(2));
}

TEST(MakeHistogram, WhatIsNotFiniteDoesNotCount) {
  EXPECT_EQ(MakeHistogram({kNaN, 1, std::numeric_limits<float>::infinity()}, false).num(), 1);
  EXPECT_THAT(MakeHistogram({kNaN}, false).bucket(), IsEmpty());
}

TEST_F(EventLogTest, ARunThatContinuesFromACheckpointHasNoStepTwice) {
  {
    const auto log = Open();
    for (const uint64_t steps : {1000, 2000, 3000}) {
      v1::RunProgress progress;
      progress.set_env_steps(steps);
      progress.set_mean_episode_return(static_cast<double>(steps));
      log->LogIteration(progress, kStart);
    }
  }
  fs::create_symlink(folder_ / "elsewhere", folder_ / "events.out.tfevents.1.link");
  ASSERT_TRUE(EventLog::KeepUpTo(folder_, 2000).ok());
  fs::remove(folder_ / "events.out.tfevents.1.link");
  std::vector<int64_t> steps;
  for (const Event& event : Events()) {
    if (event.has_summary()) steps.push_back(event.step());
  }
  EXPECT_THAT(steps, ElementsAre(1000, 2000));
}

}  // namespace
}  // namespace skein
