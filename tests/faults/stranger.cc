// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/stranger.h"

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "base/net/grpc_transport.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/testing/http_get.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

// Without limits of its own.
std::shared_ptr<grpc::Channel> OpenLimitless(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

std::string CoordinatorAddress(Cluster* cluster) {
  return FirstMatch(cluster->coordinator().Output(), "coordinator listening grpc=(\\S+)");
}

std::string LearnerAddress(Cluster* cluster) {
  return FirstMatch(cluster->learner().Output(), "learner listening data=(\\S+)");
}

std::string ServingLearner(Cluster* cluster) {
  const std::string address = LearnerAddress(cluster);
  uint64_t generation = uint64_t{1} << 40;  // No test's own.
  WaitUntil([&] { return Stranger(address).Enter(++generation); }, absl::Minutes(1), absl::Milliseconds(50));
  return address;
}

double MetricOf(const std::string& output, const std::string& series) {
  const std::string port = FirstMatch(output, "(?:metrics=\\S+:|http=http://\\S+:)(\\d+)");
  if (port.empty()) return 0;
  const std::string text = "\n" + HttpGet(std::stoi(port), "/metrics").body;
  const size_t at = text.find("\n" + series + " ");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + series.size() + 2, nullptr);
}

size_t ResidentBytes(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

Stranger::Stranger(const std::string& learner_address, const std::string& coordinator_address)
    : channel_(OpenLimitless(learner_address)) {
  if (coordinator_address.empty()) return;
  CoordinatorClient::Options options;
  options.address = coordinator_address;
  options.join.set_role(v1::ROLE_ACTOR);
  auto joined = CoordinatorClient::Join(options);
  EXPECT_TRUE(joined.ok()) << joined.status();
  if (joined.ok()) member_ = *std::move(joined);
}

Stranger::~Stranger() { Leave(); }

void Stranger::Leave() {
  if (stream_ == nullptr) return;
  context_->TryCancel();
  End();
}

v1::CollectRequest Stranger::Hello(uint64_t generation) const {
  v1::CollectRequest request;
  v1::Hello& hello = *request.mutable_hello();
  hello.set_protocol_major(kProtocolMajor);
  hello.set_protocol_minor(kProtocolMinor);
  hello.set_run_id("run");
  hello.set_actor_id(member_ == nullptr ? "stranger" : member_->membership().member_id);
  hello.set_generation(generation + (member_ == nullptr ? 0 : member_->membership().generation));
  v1::EnvSpecInfo& spec = *hello.mutable_env_spec();
  spec.set_env_id("CartPole-v1");
  spec.set_obs_size(4);
  spec.set_action_size(2);
  spec.set_discrete(true);
  spec.set_num_agents(1);
  spec.set_relocatable(true);
  return request;
}

void Stranger::Open() {
  Leave();
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  context_->set_wait_for_ready(true);
  stream_ = OpenCollect(channel_, context_.get());
}

void Stranger::SendBytes(const std::string& bytes) { WriteBytes(stream_.get(), bytes); }

std::optional<v1::CollectResponse> Stranger::Read() {
  v1::CollectResponse response;
  if (!stream_->Read(&response)) return std::nullopt;
  return response;
}

grpc::Status Stranger::End() {
  while (Read()) {
  }
  const grpc::Status status = stream_->Finish();
  stream_.reset();
  return status;
}

bool Stranger::Enter(uint64_t generation) {
  Open();
  Send(Hello(generation));
  const auto response = Read();
  return response && response->has_welcome();
}

}  // namespace skein
