// SPDX-License-Identifier: Apache-2.0
// A running skein fit as others see it: Prometheus, status page, `skein top`, TensorBoard's files, and the memory that
// it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "base/telemetry/event_file.h"
#include "tensorboard/event.pb.h"
#include "tests/fit/text_file.h"
#include "tests/testing/http_get.h"
#include "tests/testing/program.h"
#include "tests/testing/scrape.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// A training that ends when it is told to.
class RunningFit : public testing::Test {
 protected:
  RunningFit() {
    std::string text;
    for (int i = 0; i < 4000; ++i) {
      text += "1 2 ";
      for (int k = 0; k <= i * 31 % 7; ++k) text += "3 ";
      text += "4\n";
    }
    const std::string data = WriteText(folder_ + "/normal.txt", text);
    fit_ = std::make_unique<Running>(
        "skein", std::vector<std::string>{"fit", "--data", data, "--run-dir", run_, "--port", "0", "--http-port", "0",
                                          "--set", "model.hidden=16", "--set", "train.epochs=1000000", "--set",
                                          "train.lr_schedule=constant", "--set", "logging.log_interval=10", "--set",
                                          "logging.gpu_log_interval=20"});
    const std::string port = fit_->WaitForOutput("metrics at http://127\\.0\\.0\\.1:(\\d+)/metrics");
    const std::string page = fit_->WaitForOutput("metrics discovery: http://127\\.0\\.0\\.1:(\\d+)");
    address_ = fit_->WaitForOutput("skein top --address (\\S+)");
    EXPECT_TRUE(absl::SimpleAtoi(port, &metrics_port_) && absl::SimpleAtoi(page, &page_port_));
    EXPECT_TRUE(WaitUntil([&] { return Scrape(metrics_port_, "skein_fit_epochs") >= 2; }, absl::Minutes(1),
                          absl::Milliseconds(50)));
  }

  void Stop() {
    fit_->Signal(SIGTERM);
    EXPECT_EQ(fit_->WaitForEnd(), 0);
  }

  const std::string folder_ = FreshFolder("watched"), run_ = folder_ + "/run";
  std::unique_ptr<Running> fit_;
  int metrics_port_ = 0, page_port_ = 0;
  std::string address_;
};

TEST(FitCredentials, AreThoseThatVariablesName) {
  const std::string folder = FreshFolder("asked"), token = WriteText(folder + "/token", "abcdefghijklmnopqrstuvwxyz01");
  fs::permissions(token, fs::perms::owner_read | fs::perms::owner_write);
  Running fit("skein",
              {"fit", "--data", WriteText(folder + "/normal.txt", "1 2 3\n1 2 4\n1 3 4\n"), "--run-dir",
               folder + "/run", "--metrics", "0.0.0.0:0", "--http-port", "0", "--set", "train.epochs=1000000"},
              {"SKEIN_TOKEN_FILE=" + token});
  for (const char* const pattern :
       {"metrics at http://[^:]+:(\\d+)/metrics", "metrics discovery: http://127\\.0\\.0\\.1:(\\d+)"}) {
    int port = 0;
    ASSERT_TRUE(absl::SimpleAtoi(fit.WaitForOutput(pattern), &port)) << pattern;
    EXPECT_EQ(HttpGet(port, "/metrics").status, 401) << pattern;
  }
  EXPECT_EQ(fit.WaitForOutput("watch it with: skein top --address \\S+ --token-file (\\S+)\n"), token);
  fit.Signal(SIGTERM);
  EXPECT_EQ(fit.WaitForEnd(), 0);
}

TEST_F(RunningFit, PrometheusFindsItAndScrapesNumbersThatRise) {
  std::string complaints;
  EXPECT_EQ(RunWithInput("promtool check metrics", HttpGet(metrics_port_, "/metrics").body, &complaints), 0)
      << complaints;
  EXPECT_EQ(complaints, "");

  const std::string config = WriteText(folder_ + "/prometheus.yml", absl::StrFormat(R"(
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: skein
  http_sd_configs: [{url: "http://127.0.0.1:%d/sd/prometheus", refresh_interval: 1s}]
)",
                                                                                    page_port_));
  const int port = FreePort();
  const Running prometheus("/usr/bin/prometheus",
                           {"--config.file=" + config, "--storage.tsdb.path=" + folder_ + "/prometheus",
                            absl::StrCat("--web.listen-address=127.0.0.1:", port)});
  // What Prometheus itself has scraped of one series.
  const auto scraped = [&](const std::string& series) -> std::optional<double> {
    const std::string body = HttpGet(port, "/api/v1/query?query=" + series).body;
    const size_t begin = body.find('{'), end = body.rfind('}');  // It may come in chunks.
    if (begin == std::string::npos) return std::nullopt;
    const Json answer = Json::parse(body.substr(begin, end - begin + 1), nullptr, false);
    if (!answer.is_object() || answer.value("status", "") != "success") return std::nullopt;
    const Json& result = answer.at("data").at("result");
    double value = 0;
    if (result.size() != 1 || !absl::SimpleAtod(result[0].at("value").at(1).get<std::string>(), &value)) return {};
    return value;
  };
  ASSERT_TRUE(
      WaitUntil([&] { return scraped("skein_fit_steps").value_or(0) > 0; }, absl::Minutes(1), absl::Milliseconds(200)));
  const double steps = *scraped("skein_fit_steps");
  EXPECT_TRUE(WaitUntil([&] { return scraped("skein_fit_steps").value_or(0) > steps; }, absl::Minutes(1),
                        absl::Milliseconds(200)));
  for (const char* series : {"skein_fit_loss", "skein_fit_epoch_loss", "skein_fit_held_out_loss",
                             "skein_fit_gradient_norm", "skein_fit_keys_per_second", "skein_fit_eta_seconds",
                             "skein_fit_done_ratio", "skein_fit_sequences", "skein_fit_keys"}) {
    EXPECT_GT(scraped(series).value_or(0), 0) << series;
  }
  EXPECT_EQ(scraped("skein_fit_train_sequences").value_or(0) + scraped("skein_fit_held_out_sequences").value_or(0),
            4000);
  EXPECT_EQ(scraped("skein_fit_skipped_steps").value_or(-1), 0);
  Stop();
}

TEST_F(RunningFit, StatusPageAndTopShowIt) {
  const HttpReply page = HttpGet(page_port_, "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.content_type, HasSubstr("text/html"));
  Json status;
  ASSERT_TRUE(WaitUntil(  // Until a heartbeat has said it.
      [&] {
        status = Json::parse(HttpGet(page_port_, "/api/status").body, nullptr, false);
        return status.is_object() && status.value("/progress/state"_json_pointer, "") == "RUN_STATE_TRAINING" &&
               status.value("/progress/losses/epoch_loss"_json_pointer, 0.0) > 0;
      },
      absl::Minutes(1), absl::Milliseconds(100)))
      << status.dump();
  const Json& progress = status.at("progress");
  for (const char* figure : {"loss", "epoch_loss", "held_out_loss", "keys_per_second", "gradient_steps"}) {
    EXPECT_GT(progress.at("losses").at(figure).get<double>(), 0) << figure;
  }
  ASSERT_EQ(status.at("members").size(), 1) << status.dump();
  EXPECT_EQ(status.at("members")[0].at("role"), "learner");
  // Charts have points once the page's history has some.
  EXPECT_TRUE(
      WaitUntil([&] { return absl::StrContains(HttpGet(page_port_, "/api/history").body, "\"held_out_loss\""); },
                absl::Minutes(1), absl::Milliseconds(200)));
  EXPECT_THAT(HttpGet(page_port_, "/api/config").body, HasSubstr("sequences"));

  const Ended top = RunToEnd("skein", {"top", "--count", "1", "--address", address_});
  EXPECT_EQ(top.code, 0) << top.err;
  EXPECT_THAT(top.out, AllOf(HasSubstr("training"), HasSubstr("learner"), HasSubstr("sequences/s"),
                             ContainsRegex("held out [0-9]")));
  const Ended json = RunToEnd("skein", {"status", "--json", "--address", address_});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(Json::parse(json.out, nullptr, false)["progress"]["state"], "RUN_STATE_TRAINING");
  Stop();
}

// Events of TensorBoard's file in `folder`, whose records must all be whole.
std::vector<tensorboard::Event> ReadEvents(const std::string& folder) {
  std::vector<tensorboard::Event> events;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!absl::StartsWith(entry.path().filename().string(), "events.out.tfevents.")) continue;
    ++files;
    const uintmax_t size = fs::file_size(entry.path());
    // Trim reads every record's checksums, and would cut off what is damaged.
    EXPECT_TRUE(EventFile::Trim(entry.path(), [&](const std::string& record) {
                  EXPECT_TRUE(events.emplace_back().ParseFromString(record));
                  return true;
                }).ok());
    EXPECT_EQ(fs::file_size(entry.path()), size) << entry.path();
  }
  EXPECT_EQ(files, 1);
  return events;
}

TEST_F(RunningFit, TensorBoardHasTheNumbersOfMetricsJsonl) {
  Stop();
  std::map<int64_t, std::map<std::string, float>> events;
  for (const tensorboard::Event& event : ReadEvents(run_)) {
    for (const auto& value : event.summary().value()) {
      EXPECT_TRUE(events[event.step()].emplace(value.tag(), value.simple_value()).second)
          << value.tag() << " twice at step " << event.step();
    }
  }
  int64_t epochs = 0, of_steps = 0, last = 0;
  for (const auto text : absl::StrSplit(*ReadFile(run_ + "/metrics.jsonl"), '\n', absl::SkipEmpty())) {
    const Json line = Json::parse(text);
    const int64_t step = line.at("iteration");
    last = step;
    epochs += line.contains("held_out_loss") ? 1 : 0;
    of_steps += line.contains("loss") ? 1 : 0;
    EXPECT_EQ(line.contains("loss"), step % 10 == 0) << "log_interval, step " << step;
    EXPECT_EQ(line.contains("resident_bytes"), step % 20 == 0) << "gpu_log_interval, step " << step;
    for (const auto& [name, number] : line.items()) {
      if (name == "iteration" || name == "time" || !number.is_number()) continue;
      const auto& tags = events[step];
      const auto tag = tags.find("fit/" + name);
      ASSERT_NE(tag, tags.end()) << name << " of step " << step;
      EXPECT_FLOAT_EQ(tag->second, number.get<float>()) << name << " of step " << step;
    }
  }
  EXPECT_GE(epochs, 2);
  EXPECT_EQ(of_steps, last / 10);
}

// A number of bytes in /proc/PID/status; 0: the process has ended.
uint64_t StatusBytes(pid_t pid, const std::string& name) {
  const std::string text = ReadFile(absl::StrCat("/proc/", pid, "/status")).value_or("");
  uint64_t kilobytes = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name + ":")) continue;
    absl::ConsumeSuffix(&line, "kB");
    if (!absl::SimpleAtoi(line, &kilobytes)) return 0;
  }
  return kilobytes << 10;
}

struct Memory {
  uint64_t first_epoch = 0, most = 0;  // The most until the end of the first epoch, and until the end.
};

// Trains three epochs of `lines` sequences with 400 keys each, 1,000 bytes of text a line.
Memory TrainOn(const std::string& folder, int lines) {
  std::string kinds[40];
  for (int kind = 0; kind < 40; ++kind) {
    for (int key = 0; key < 400; ++key) absl::StrAppend(&kinds[kind], (kind * key + key * key / 7) % 60, " ");
    kinds[kind] += "\n";
  }
  std::string text;
  for (int i = 0; i < lines; ++i) text += kinds[i * 17 % 40];
  const std::string data = WriteText(folder + "/data", text);
  EXPECT_GT(fs::file_size(data), static_cast<uintmax_t>(lines) * 1000);
  text = std::string();
  Running fit("skein", {"fit",
                        "--data",
                        data,
                        "--run-dir",
                        folder + "/run",
                        "--port",
                        "-1",
                        "--set",
                        "model.hidden=16",
                        "--set",
                        "model.embedding=16",
                        "--set",
                        "model.layers=1",
                        "--set",
                        "train.epochs=3",
                        "--set",
                        "train.batch_size=1024",
                        "--set",
                        "data.window=4096",
                        "--set",
                        "data.holdout=0.02"});
  Memory memory;
  const absl::Time deadline = absl::Now() + absl::Minutes(3);
  while (!fit.ended() && absl::Now() < deadline) {
    memory.most = std::max(memory.most, StatusBytes(fit.pid(), "VmHWM"));
    if (memory.first_epoch == 0 && absl::StrContains(fit.Output(), "epoch 1 of 3:")) memory.first_epoch = memory.most;
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(fit.WaitForEnd(absl::Seconds(1)), 0);
  EXPECT_THAT(fit.Output(), HasSubstr("finished: epoch "));
  EXPECT_GT(memory.first_epoch, 0);
  return memory;
}

// 12 MB of text fill two windows and all batches ahead. 96 MB, which are 130 MB more as numbers, may take no more than
// that but for what the allocator keeps.
TEST(FitMemory, DoesNotGrowWithTheData) {
#if defined(SKEIN_SANITIZED)
  GTEST_SKIP() << "sanitizers keep what is freed";
#endif
  const Memory small = TrainOn(FreshFolder("memory-small"), 12000), large = TrainOn(FreshFolder("memory-large"), 96000);
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_LT(large.most, small.most + 48 * kMiB);
  EXPECT_LT(large.most, large.first_epoch + 24 * kMiB) << "in later epochs";
  std::printf("most memory: %lu MiB of 12 MB of data, %lu MiB of 96 MB\n", small.most / kMiB, large.most / kMiB);
}

}  // namespace
}  // namespace skein
