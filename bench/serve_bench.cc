// SPDX-License-Identifier: Apache-2.0
// skein bench serve: actions from a server on the loopback against the same policy in this process.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "base/net/http_server.h"
#include "base/number/philox.h"
#include "base/process/clock.h"
#include "bench/measure_rate.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "prometheus/registry.h"
#include "serve/http_actions.h"
#include "serve/policy_service.h"

namespace skein {
namespace {

constexpr char kRate[] = "actions_per_second";

struct ServeBenchOptions : BenchOptions {
  int64_t rows = 256;
  int clients = 2;
};

// A policy of new weights, as the recipe's configuration makes it.
absl::StatusOr<std::shared_ptr<const ServedPolicy>> MakePolicyToServe(const v1::RunConfig& config) {
  CheckpointPolicy made;
  made.config = config;
  const EnvOptions options = MakeEnvOptions(config.env());
  const auto spec = FindEnvSpec(config.env().id(), options);
  if (!spec.ok()) return spec.status();
  auto transforms = FindTransforms(config.env().id(), options);
  if (!transforms.ok()) return transforms.status();
  made.spec = *spec;
  made.transforms = *std::move(transforms);
  const PolicySpec network = MakePolicySpec(config.model(), *spec);
  RandomStream random(config.seed(), RandomPurpose::kInit, 0, 0);
  for (const ParameterSpec& parameter : PolicyParameters(network)) {
    int64_t size = 1;
    for (const int64_t extent : parameter.shape) size *= extent;
    std::vector<float>& values = made.parameters.emplace_back();
    for (int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(0.1 * random.Normal()));
  }
  made.normalization = Normalization::Identity(network.obs_size);
  made.policy = MakePolicy(1, network, made.parameters, made.normalization);
  return std::make_shared<const ServedPolicy>(
      ServedPolicy{.actor = PortableActor(MakePortable(made), made.policy), .checkpoint = "new weights"});
}

std::vector<float> Observations(const PortableActor& actor, int64_t rows) {
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  std::vector<float> values(static_cast<size_t>(rows * actor.observation_size()));
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

// One client with a connection and a stream of its own.
class Client {
 public:
  Client(int port, std::string session, const std::vector<float>& observations)
      : stub_(v1::PolicyServer::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", port)))),
        stream_(stub_->ActInTurn(&context_)) {
    request_.set_session(std::move(session));
    request_.set_observations(reinterpret_cast<const char*>(observations.data()), observations.size() * sizeof(float));
  }
  ~Client() {
    stream_->WritesDone();
    (void)stream_->Finish();
  }
  // False: the stream is broken.
  bool ActInTurn() { return stream_->Write(request_) && stream_->Read(&response_); }
  bool ActAlone() {
    grpc::ClientContext context;
    return stub_->Act(&context, request_, &response_).ok();
  }

 private:
  const std::unique_ptr<v1::PolicyServer::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::ActRequest, v1::ActResponse>> stream_;
  v1::ActRequest request_;
  v1::ActResponse response_;
};

// One observation after the other over HTTP, as JSON, each over a connection of its own: the server keeps none.
class HttpClient {
 public:
  HttpClient(int port, const std::vector<float>& observation) : port_(static_cast<uint16_t>(port)) {
    const std::string body = Json{{"session", "http"}, {"observation", observation}}.dump();
    request_ = absl::StrCat("POST /v1/act HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n",
                            "Content-Length: ", body.size(), "\r\n\r\n", body);
  }
  // False: no answer, or another one than 200.
  bool Act() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string answer;
    char bytes[4096];
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
        send(fd, request_.data(), request_.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request_.size())) {
      for (ssize_t got = 0; (got = recv(fd, bytes, sizeof(bytes), 0)) > 0;)
        answer.append(bytes, static_cast<size_t>(got));
    }
    close(fd);
    return absl::StartsWith(answer, "HTTP/1.1 200 ") && absl::StrContains(answer, "\"action\"");
  }

 private:
  const uint16_t port_;
  std::string request_;
};

// Latencies of one call after the other for `duration`, as NAME_p50_us and NAME_p99_us.
template <typename Call>
absl::Status AddLatency(const std::string& name, absl::Duration duration, const Call& call, Json* row) {
  std::vector<double> microseconds;
  const absl::Duration end = MonotonicNow() + duration;
  for (absl::Duration begin = MonotonicNow(); begin < end;) {
    if (!call()) return absl::UnavailableError("the server does not answer");
    const absl::Duration now = MonotonicNow();
    microseconds.push_back(absl::ToDoubleMicroseconds(now - begin));
    begin = now;
  }
  std::sort(microseconds.begin(), microseconds.end());
  const auto at = [&](double share) {
    return microseconds[static_cast<size_t>(share * static_cast<double>(microseconds.size() - 1))];
  };
  (*row)[name + "_p50_us"] = at(0.5);
  (*row)[name + "_p99_us"] = at(0.99);
  return absl::OkStatus();
}

absl::Status RunServeBench(const ServeBenchOptions& options, const ShutdownSignal& shutdown) {
  const auto config = ReadBenchConfig(options);
  if (!config.ok()) return config.status();
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  const auto policy = MakePolicyToServe(*config);
  if (!policy.ok()) return policy.status();
  prometheus::Registry registry;
  ServeMetrics metrics(&registry);
  ActionServer server({}, *policy, &metrics);
  PolicyService service(&server);
  int port = 0;
  const std::string address = "127.0.0.1:0";
  const auto grpc = StartGrpcServer(address, {&service}, &port, ActionServerLimits(address));
  if (!grpc.ok()) return grpc.status();
  const auto http = HttpServer::Listen(address);
  if (!http.ok()) return http.status();
  ServeActions(http->get(), &server, std::make_shared<prometheus::Registry>());
  const PortableActor& actor = (*policy)->actor;
  const std::vector<float> one = Observations(actor, 1), many = Observations(actor, options.rows);

  VerbRun run;
  run.heading = absl::StrCat(config->env().id(), ": ", options.clients, " clients of ", options.rows,
                             " rows on the loopback, actions/s; latency of one row");
  run.config = DescribeConfig("serve", options, *config);
  run.config["rows"] = options.rows;
  run.config["clients"] = options.clients;
  run.contest.rate = kRate;
  run.contest.ours_title = "served";
  run.contest.limit_title = "in this process";
  run.columns = {{"turn_p50_us", "p50 us"},
                 {"turn_p99_us", "p99 us"},
                 {"http_p50_us", "HTTP p50 us"},
                 {"http_p99_us", "HTTP p99 us"}};
  run.contest.ours = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    Json row;
    {
      Client client(port, "one", one);
      if (absl::Status s = AddLatency(
              "turn", duration / 2, [&] { return client.ActInTurn(); }, &row);
          !s.ok())
        return s;
      if (absl::Status s = AddLatency(
              "call", duration / 2, [&] { return client.ActAlone(); }, &row);
          !s.ok())
        return s;
      const HttpClient by_json((*http)->port(), one);
      if (absl::Status s = AddLatency(
              "http", duration / 2, [&] { return by_json.Act(); }, &row);
          !s.ok())
        return s;
    }
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Job> jobs;
    for (int i = 0; i < options.clients; ++i) {
      clients.push_back(std::make_unique<Client>(port, absl::StrCat("many ", i), many));
      jobs.push_back(
          [client = clients.back().get(), rows = options.rows]() -> int64_t { return client->ActInTurn() ? rows : 0; });
    }
    row[kRate] = MeasureRate(jobs, duration);
    return row;
  };
  run.contest.limit = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    std::vector<Job> jobs;
    for (int i = 0; i < options.clients; ++i) {
      jobs.push_back(
          [&actor, &many, rows = options.rows,
           state = std::vector<float>(static_cast<size_t>(options.rows * actor.state_size())),
           resets = std::vector<uint8_t>(static_cast<size_t>(options.rows)),
           head = std::vector<float>(static_cast<size_t>(options.rows * actor.head_size())),
           action = std::vector<float>(static_cast<size_t>(options.rows * actor.action_size()))]() mutable -> int64_t {
            actor.Head(many.data(), resets.data(), rows, state.data(), head.data());
            actor.Action(head.data(), nullptr, rows, action.data());
            return rows;
          });
    }
    return Json{{absl::StrCat("limit_", kRate), MeasureRate(jobs, duration)}};
  };
  ProgressLine progress = StderrProgress();
  return MeasureAndReport(run, options, shutdown, &progress);
}

}  // namespace

void AddBenchServe(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("serve", "Actions of a served policy: latency with one row, rate with many");
  auto options = std::make_shared<ServeBenchOptions>();
  AddBenchFlags(verb, options.get());
  verb->add_option("--rows", options->rows, "Rows of a request of the clients whose rate is measured")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  verb->add_option("--clients", options->clients, "Such clients")->check(CLI::Range(1, 1000))->capture_default_str();
  verb->footer("Example:\n  skein bench serve --env HalfCheetah-v5 --rows 1024");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunServeBench(*options, shutdown); };
  });
}

}  // namespace skein
