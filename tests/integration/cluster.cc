// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/cluster.h"

#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "base/net/grpc_transport.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {

Cluster::Cluster(const std::vector<std::string>& overrides, const std::string& config_path) {
  std::vector<std::string> all = {"coordinator.heartbeat_seconds=0.2", "coordinator.lease_seconds=2"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const auto config = LoadRunConfig(config_path, all, 2);
  EXPECT_TRUE(config.ok()) << config.status();
  config_path_ = folder_.Write("config.yaml", ToYaml(config.value_or(v1::RunConfig())));
}

Cluster::~Cluster() { ExpectInvariants(History()); }

void Cluster::StartCoordinator(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<std::string> variables = {history_variable()};
  variables.insert(variables.end(), environment.begin(), environment.end());
  std::vector<std::string> all = {"--config", config_path_,  "--listen", address_,
                                  "--http",   http_address_, "--run-id", "run"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  coordinator_ = std::make_unique<Running>("skein-coordinator", all, variables);
  address_ = coordinator_->WaitForOutput("coordinator listening grpc=(\\S+)");
  http_address_ = FirstMatch(coordinator_->Output(), "http=http://([^/]+)/");
  stub_ = v1::Coordinator::NewStub(OpenChannel(address_));
}

void Cluster::StartLearner(const std::vector<std::string>& environment, const std::vector<std::string>& arguments) {
  std::vector<std::string> variables = {history_variable()};
  variables.insert(variables.end(), environment.begin(), environment.end());
  std::vector<std::string> all = {"--coordinator", address_, "--run-dir", folder_.path()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  learner_ = std::make_unique<Running>("skein-learner", all, variables);
  learner_->WaitForOutput("learner listening data=(\\S+)");
}

std::unique_ptr<Running> Cluster::StartRank(int rank, int ranks, const std::vector<std::string>& environment) const {
  std::vector<std::string> variables = {history_variable(),
                                        absl::StrCat("RANK=", rank),
                                        absl::StrCat("WORLD_SIZE=", ranks),
                                        absl::StrCat("LOCAL_RANK=", rank),
                                        "MASTER_ADDR=127.0.0.1",
                                        "MASTER_PORT=1"};
  variables.insert(variables.end(), environment.begin(), environment.end());
  return std::make_unique<Running>(
      "skein-learner", std::vector<std::string>{"--coordinator", address_, "--run-dir", folder_.path()}, variables);
}

std::unique_ptr<Running> Cluster::StartActor(const std::string& coordinator,
                                             const std::vector<std::string>& environment, int runners) const {
  std::vector<std::string> variables = {history_variable()};
  variables.insert(variables.end(), environment.begin(), environment.end());
  return std::make_unique<Running>(
      "skein-actor",
      std::vector<std::string>{"--coordinator", coordinator.empty() ? address_ : coordinator, "--runners",
                               absl::StrCat(runners)},
      variables);
}

int Cluster::http_port() const { return ParseHostPort(http_address_)->port; }

std::string Cluster::learner_address() const { return FirstMatch(learner_->Output(), "learner listening data=(\\S+)"); }

absl::StatusOr<v1::StatusResponse> Cluster::Status() const {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(2)));
  v1::StatusResponse response;
  if (absl::Status s = FromGrpc(stub_->GetStatus(&context, {}, &response)); !s.ok()) return s;
  return response;
}

void Cluster::ExpectBalanced(const v1::StatusResponse& status) {
  EXPECT_TRUE(Balances(status.progress().account())) << status.progress().account().ShortDebugString();
}

bool Cluster::Wait(const std::function<bool()>& condition, absl::Duration limit) {
  return WaitUntil(condition, limit, absl::Milliseconds(20));
}

uint64_t StepsAtTheEnd(const Running& actor) {
  const std::string steps = FirstMatch(actor.Output(), "actor left member=\\S+ env_steps=(\\d+)");
  EXPECT_FALSE(steps.empty());
  return steps.empty() ? 0 : std::stoull(steps);
}

}  // namespace skein
