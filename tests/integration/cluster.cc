// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/cluster.h"

#include "absl/strings/str_cat.h"
#include "base/config.h"
#include "base/grpc_transport.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {

Cluster::Cluster(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"coordinator.heartbeat_seconds=0.2", "coordinator.lease_seconds=2"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const auto config = LoadRunConfig("configs/cartpole_ppo.yaml", all, 2);
  EXPECT_TRUE(config.ok()) << config.status();
  config_path_ = folder_.Write("config.yaml", ToYaml(config.value_or(v1::RunConfig())));
}

void Cluster::StartCoordinator() {
  coordinator_ = std::make_unique<Running>(
      "skein-coordinator", std::vector<std::string>{"--config", config_path_, "--listen", address_, "--http",
                                                    http_address_, "--run-id", "run"});
  address_ = coordinator_->WaitForOutput("coordinator listening grpc=(\\S+)");
  http_address_ = FirstMatch(coordinator_->Output(), "http=http://([^/]+)/");
  stub_ = v1::Coordinator::NewStub(OpenChannel(address_));
}

void Cluster::StartLearner() {
  learner_ = std::make_unique<Running>(
      "skein-learner", std::vector<std::string>{"--coordinator", address_, "--run-dir", folder_.path()});
  learner_->WaitForOutput("learner listening data=(\\S+)");
}

std::unique_ptr<Running> Cluster::StartRank(int rank, int ranks) const {
  return std::make_unique<Running>(
      "skein-learner", std::vector<std::string>{"--coordinator", address_, "--run-dir", folder_.path()},
      std::vector<std::string>{absl::StrCat("RANK=", rank), absl::StrCat("WORLD_SIZE=", ranks),
                               absl::StrCat("LOCAL_RANK=", rank), "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"});
}

std::unique_ptr<Running> Cluster::StartActor() const {
  return std::make_unique<Running>("skein-actor",
                                   std::vector<std::string>{"--coordinator", address_, "--runners", "1"});
}

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
