// SPDX-License-Identifier: Apache-2.0
// The real binary.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <regex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/cli/scratch_folder.h"
#include "tests/testing/http_get.h"
#include "tests/testing/loopback.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Binary() {
  const char* folder = std::getenv("SKEIN_BIN");
  return (folder != nullptr ? std::string(folder) : ProgramFolder() + "/..") + "/skein-coordinator";
}

struct Running {
  std::unique_ptr<Subprocess> process;
  std::string grpc_host;
  int grpc_port = 0;
  int http_port = 0;
};

Running Start(std::vector<std::string> flags, const std::string& listen = "127.0.0.1:0") {
  Subprocess::Options options;
  options.argv = {Binary(), "--listen", listen};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  options.capture_stdout = true;
  Running running;
  running.process = *Subprocess::Spawn(options);
  absl::StatusOr<std::string> line = running.process->ReadLine(absl::Seconds(10));
  EXPECT_TRUE(line.ok()) << line.status();
  std::smatch match;
  const std::regex form(R"(coordinator listening grpc=([^: ]+):(\d+) http=http://[^: ]+:(\d+)/)");
  EXPECT_TRUE(line.ok() && std::regex_match(*line, match, form)) << line.value_or("");
  if (match.size() == 4) {
    running.grpc_host = match[1];
    running.grpc_port = std::stoi(match[2]);
    running.http_port = std::stoi(match[3]);
  }
  return running;
}

// Ends at once with this code and one line that contains `message`.
void ExpectFailure(const std::vector<std::string>& flags, int code, const std::string& message) {
  char path[] = "/tmp/skein-test-XXXXXX";
  close(mkstemp(path));
  Subprocess::Options options;
  options.argv = {Binary()};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  options.output_path = path;
  std::unique_ptr<Subprocess> process = *Subprocess::Spawn(options);
  EXPECT_EQ(process->Wait(absl::Seconds(2)), code) << message;
  std::ifstream file(path);
  const std::string output((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(output, HasSubstr(message));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  unlink(path);
}

v1::JoinResponse JoinAs(v1::Coordinator::Stub* stub, uint32_t rank) {
  grpc::ClientContext context;
  v1::JoinRequest request;
  request.set_protocol_major(kProtocolMajor);
  request.set_role(v1::ROLE_LEARNER);
  request.set_rank(rank);
  request.set_ranks(2);
  request.set_data_address(":7000");
  v1::JoinResponse response;
  const grpc::Status status = stub->Join(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

TEST(CoordinatorProcess, ServesWhatItAnnouncesAndStopsOnSigterm) {
  Running running =
      Start({"--run-id", "run7", "--run-dir", "runs/x", "--store", "none", "--announce-host", "localhost"});
  EXPECT_EQ(running.grpc_host, "localhost");
  auto stub = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(running.grpc_port)));
  grpc::ClientContext context;
  v1::StatusResponse status;
  ASSERT_TRUE(stub->GetStatus(&context, v1::GetStatusRequest(), &status).ok());
  EXPECT_EQ(status.run_id(), "run7");
  EXPECT_EQ(status.run_directory(), "runs/x");
  EXPECT_EQ(status.env_id(), "HalfCheetah-v5");  // A default of the configuration.
  EXPECT_THAT(HttpGet(running.http_port, "/sd/prometheus").body,
              HasSubstr("localhost:" + std::to_string(running.http_port)));
  const std::string metrics = HttpGet(running.http_port, "/metrics").body;
  std::string output;
  EXPECT_EQ(RunWithInput("promtool check metrics", metrics, &output), 0) << output;
  EXPECT_THAT(metrics, HasSubstr("\nskein_coordinator_status_page_info{url=\"http://localhost:" +
                                 std::to_string(running.http_port) + "/\"} 1\n"));
  running.process->Signal(SIGTERM);
  EXPECT_EQ(running.process->Wait(absl::Seconds(2)), 0);
}

TEST(CoordinatorProcess, ShowsConfigurationAndLogToThoseWhoHaveTheTokenAndNeverTheToken) {
  const ScratchFolder folder;
  const std::string token = "a-token-of-more-than-16-bytes", file = folder.Write("token", token);
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const std::string log =
      folder.Write("log.jsonl", R"({"time":"2026-01-31T12:00:00.000Z","level":"info","program":"p","message":"told )" +
                                    token + "\"}\n");
  Running running = Start({"--token-file", file, "--set", "name=" + token, "--log-json", log});
  for (const char* path : {"/api/config", "/api/log", "/api/history"}) {
    EXPECT_EQ(HttpGet(running.http_port, path).status, 401) << path;
    const HttpReply reply = HttpGet(running.http_port, path, "Authorization: Bearer " + token + "\r\n");
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_THAT(reply.body, testing::Not(HasSubstr(token))) << path;
    // Where it would have been.
    EXPECT_EQ(absl::StrContains(reply.body, "[token]"), path != std::string("/api/history")) << path;
  }
}

// As after a restart: members and viewers have one run, with one history.
TEST(CoordinatorProcess, TheNextCoordinatorGoesOnWithTheCharts) {
  const ScratchFolder folder;
  const auto points = [](const Running& running) {
    return nlohmann::json::parse(HttpGet(running.http_port, "/api/history").body)["seconds"].get<std::vector<double>>();
  };
  Running first = Start({"--run-dir", folder.path()});
  while (points(first).size() < 2) absl::SleepFor(absl::Milliseconds(50));
  const std::vector<double> before = points(first);
  first.process->Signal(SIGTERM);
  EXPECT_EQ(first.process->Wait(absl::Seconds(5)), 0);
  Running second = Start({"--run-dir", folder.path()});
  while (points(second).size() < before.size() + 1) absl::SleepFor(absl::Milliseconds(50));
  const std::vector<double> after = points(second);
  EXPECT_EQ(std::vector<double>(after.begin(), after.begin() + static_cast<long>(before.size())), before);
  EXPECT_TRUE(std::is_sorted(after.begin(), after.end()));
}

TEST(CoordinatorProcess, StopsInTimeWithAWaitingBarrierAndOpenConnections) {
  Running running = Start({});
  auto stub = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(running.grpc_port)));
  v1::JoinResponse a = JoinAs(stub.get(), 0);
  JoinAs(stub.get(), 1);
  auto waiting = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::BarrierRequest request;
    request.set_member_id(a.member_id());
    request.set_member_generation(a.generation());
    request.set_name("start");
    request.set_barrier_generation(1);
    request.set_timeout_seconds(60);
    v1::BarrierResponse response;
    return stub->ArriveAtBarrier(&context, request, &response).error_code();
  });
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  auto is_waiting = [&] {
    return HttpGet(running.http_port, "/metrics").body.find("barrier_waiters 1\n") != std::string::npos;
  };
  while (!is_waiting()) ASSERT_LT(absl::Now(), deadline);
  const int idle = ConnectTo(running.grpc_port);
  EXPECT_GE(idle, 0);
  running.process->Signal(SIGTERM);
  EXPECT_EQ(running.process->Wait(absl::Seconds(2)), 0);
  EXPECT_EQ(waiting.get(), grpc::StatusCode::UNAVAILABLE);
  close(idle);
}

TEST(CoordinatorProcess, StopsInSpiteOfAnIdleBrowser) {
  Running running = Start({});
  const int idle = ConnectTo(running.http_port);
  EXPECT_GE(idle, 0);
  running.process->Signal(SIGTERM);
  EXPECT_EQ(running.process->Wait(absl::Seconds(2)), 0);
  close(idle);
}

TEST(CoordinatorProcess, HandsOutAConfigurationThatIsResolvedAndValid) {
  char path[] = "/tmp/skein-test-XXXXXX";
  close(mkstemp(path));
  std::ofstream(path) << "rollout:\n  num_envs: 0\n  envs_per_runner: 8\n";
  using Flags = std::vector<std::string>;
  // No file: the environments of one runner by default, 16.
  for (const auto& [flags, num_envs, name] :
       {std::tuple{Flags{}, 16u, "HalfCheetah-v5-s1"},
        {Flags{"--config", path}, 8u, "HalfCheetah-v5-s1"},
        {Flags{"--config", path, "--set", "name=123", "--set=rollout.num_envs=32"}, 32u, "123"}}) {
    Running running = Start(flags);
    auto stub = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(running.grpc_port)));
    const v1::RunConfig config = JoinAs(stub.get(), 0).config();
    EXPECT_EQ(config.rollout().num_envs(), num_envs);
    EXPECT_EQ(config.name(), name);
  }
  std::ofstream(path) << "rollout:\n  num_envs: 24\n  envs_per_runner: 16\n";
  ExpectFailure({"--listen", "127.0.0.1:0", "--set", "nam=x"}, 64, "nam");
  ExpectFailure({"--listen", "127.0.0.1:0", "--config", path}, 64, "rollout.num_envs (24) must be a multiple");
  unlink(path);
}

TEST(CoordinatorProcess, LogsAsJsonToo) {
  char path[] = "/tmp/skein-test-XXXXXX";
  close(mkstemp(path));
  Running running = Start({"--log-json", path});
  auto stub = v1::Coordinator::NewStub(OpenChannel("127.0.0.1:" + std::to_string(running.grpc_port)));
  JoinAs(stub.get(), 0);
  running.process->Signal(SIGTERM);
  EXPECT_EQ(running.process->Wait(absl::Seconds(2)), 0);
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line, testing::AllOf(HasSubstr("\"program\":\"skein-coordinator\""), HasSubstr("learner-0")));
  unlink(path);
}

TEST(CoordinatorProcess, LinksLeadToThePageThatItIsGiven) {
  Running running = Start({"--page-url", "https://page.example.org/run/"});
  EXPECT_THAT(HttpGet(running.http_port, "/metrics").body,
              HasSubstr("\nskein_coordinator_status_page_info{url=\"https://page.example.org/run/\"} 1\n"));
  ExpectFailure({"--page-url", "javascript:alert(1)"}, 64, "--page-url: want http://");
}

// An IPv4 address of this machine that is not the loopback's; empty: there is none.
std::string OwnAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  const absl::Cleanup free_all = [all] { freeifaddrs(all); };
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof(text));
    if (!IsLoopback(text)) return text;
  }
  return "";
}

// Where the coordinator has Prometheus scrape an actor that calls from `own` and announces metrics at another host.
std::string ScrapeListWithAStranger(const std::string& own, std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--insecure", "--store", "none"});
  const Running running = Start(flags, "0.0.0.0:0");
  const auto stub = v1::Coordinator::NewStub(OpenChannel(JoinHostPort(own, running.grpc_port)));
  grpc::ClientContext context;
  v1::JoinRequest request;
  request.set_protocol_major(kProtocolMajor);
  request.set_role(v1::ROLE_ACTOR);
  request.set_metrics_address("198.51.100.7:9100");
  v1::JoinResponse response;
  const grpc::Status joined = stub->Join(&context, request, &response);
  EXPECT_TRUE(joined.ok()) << joined.error_message();
  return HttpGet(running.http_port, "/sd/prometheus").body;
}

TEST(CoordinatorProcess, AMemberCannotHavePrometheusCallSomebodyElseUnlessAllowed) {
  const std::string own = OwnAddress();
  if (own.empty()) GTEST_SKIP() << "this machine has no address but the loopback's";
  EXPECT_THAT(ScrapeListWithAStranger(own, {}),
              AllOf(HasSubstr("\"" + own + ":9100\""), Not(HasSubstr("198.51.100.7"))));
  EXPECT_THAT(ScrapeListWithAStranger(own, {"--foreign-metrics"}), HasSubstr("\"198.51.100.7:9100\""));
}

TEST(CoordinatorProcess, AStateThatCannotBeKeptIsCountedAndShown) {
  const ScratchFolder scratch;
  scratch.Write("run/coordinator", "a file where the folder should be");
  const auto metrics = [](const std::vector<std::string>& flags) {
    const Running running = Start(flags);
    return HttpGet(running.http_port, "/metrics").body;
  };
  EXPECT_THAT(metrics({"--run-dir", scratch.path() + "/run"}),
              AllOf(HasSubstr("\nskein_coordinator_state_write_errors_total 1\n"),
                    HasSubstr("\nskein_coordinator_state_kept 0\n")));
  EXPECT_THAT(metrics({"--run-dir", scratch.path() + "/other"}),
              AllOf(HasSubstr("\nskein_coordinator_state_write_errors_total 0\n"),
                    HasSubstr("\nskein_coordinator_state_kept 1\n")));
  EXPECT_THAT(metrics({"--store", "none"}), HasSubstr("\nskein_coordinator_state_kept Nan\n"));
}

TEST(CoordinatorProcess, APortInUseIsUnavailable) {
  Running running = Start({});
  const std::string taken = std::to_string(running.grpc_port);
  ExpectFailure({"--listen", "127.0.0.1:" + taken}, 69, taken);
  const std::string http = std::to_string(running.http_port);
  ExpectFailure({"--listen", "127.0.0.1:0", "--http", "127.0.0.1:" + http}, 69, http);
}

TEST(CoordinatorProcess, BadFlagsAndConfigurationsAreNamed) {
  ExpectFailure({"--no-such-flag"}, 64, "--no-such-flag");
  ExpectFailure({"--listen", "nonsense"}, 64, "nonsense");
  ExpectFailure({"--config", "/nonexistent/run.yaml"}, 65, "/nonexistent/run.yaml");
  char path[] = "/tmp/skein-test-XXXXXX";
  close(mkstemp(path));
  std::ofstream(path) << "enw: 3\n";
  ExpectFailure({"--listen", "127.0.0.1:0", "--config", path}, 64, "enw");
  unlink(path);
}

}  // namespace
}  // namespace skein
