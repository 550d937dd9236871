// SPDX-License-Identifier: Apache-2.0
#include "serve/policy_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/host_port.h"

namespace skein {
namespace {

absl::StatusOr<Step> ReadStep(const v1::ActRequest& request) {
  const std::string& bytes = request.observations();
  if (bytes.size() % sizeof(float) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("observations: ", bytes.size(), " bytes are no whole number of float32"));
  }
  Step step = {.session = request.session(),
               .observations = std::vector<float>(bytes.size() / sizeof(float)),
               .resets = std::vector<uint8_t>(request.resets().begin(), request.resets().end()),
               .sample = request.sample()};
  std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(step.observations.data()));
  return step;
}

template <typename Value>
void WriteBytes(const std::vector<Value>& values, std::string* bytes) {
  bytes->assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

void WriteActed(const Acted& acted, v1::ActResponse* response) {
  if (acted.policy->actor.portable().spec.discrete) {
    WriteBytes(std::vector<int32_t>(acted.actions.begin(), acted.actions.end()), response->mutable_actions());
  } else {
    WriteBytes(acted.actions, response->mutable_actions());
  }
  response->set_env_steps(acted.policy->env_steps);
}

// One stream: reads a request, answers it, reads the next. At most one of them is under way, so that no lock is needed.
class TurnReactor final : public grpc::ServerBidiReactor<v1::ActRequest, v1::ActResponse> {
 public:
  explicit TurnReactor(ActionServer* server) : server_(server) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);  // The client has ended the stream.
    auto step = ReadStep(request_);
    if (!step.ok()) return Finish(ToGrpc(step.status()));
    server_->Act(*std::move(step), [this](absl::StatusOr<Acted> acted) {
      if (!acted.ok()) return Finish(ToGrpc(acted.status()));
      WriteActed(*acted, &response_);
      StartWrite(&response_);
    });
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the stream is broken"));
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  ActionServer* const server_;
  v1::ActRequest request_;
  v1::ActResponse response_;
};

}  // namespace

ServerLimits ActionServerLimits(const std::string& address, const Credentials& credentials) {
  constexpr double kCallsPerSecond = 100000;
  const auto parsed = ParseHostPort(address);
  ServerLimits limits;
  const bool known = credentials.has_tls() || !credentials.token.empty() || (parsed.ok() && IsLoopback(parsed->host));
  if (known) limits.calls_per_second = kCallsPerSecond;
  return limits;
}

grpc::ServerUnaryReactor* PolicyService::Act(grpc::CallbackServerContext* context, const v1::ActRequest* request,
                                             v1::ActResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto step = ReadStep(*request);
  if (!step.ok()) {
    reactor->Finish(ToGrpc(step.status()));
    return reactor;
  }
  server_->Act(*std::move(step), [reactor, response](absl::StatusOr<Acted> acted) {
    if (acted.ok()) WriteActed(*acted, response);
    reactor->Finish(ToGrpc(acted.status()));
  });
  return reactor;
}

grpc::ServerBidiReactor<v1::ActRequest, v1::ActResponse>* PolicyService::ActInTurn(grpc::CallbackServerContext*) {
  return new TurnReactor(server_);
}

grpc::ServerUnaryReactor* PolicyService::EndSession(grpc::CallbackServerContext* context,
                                                    const v1::EndSessionRequest* request, v1::EndSessionResponse*) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(server_->EndSession(request->session())));
  return reactor;
}

grpc::ServerUnaryReactor* PolicyService::Describe(grpc::CallbackServerContext* context, const v1::DescribeRequest*,
                                                  v1::DescribeResponse* response) {
  const std::shared_ptr<const ServedPolicy> policy = server_->policy();
  const EnvSpec& spec = policy->actor.portable().spec;
  response->set_env_id(spec.id);
  response->set_observation_size(static_cast<uint32_t>(policy->actor.observation_size()));
  response->set_discrete(spec.discrete);
  response->set_action_size(static_cast<uint32_t>(spec.action_size));
  response->set_state_size(static_cast<uint32_t>(policy->actor.state_size()));
  response->set_checkpoint(policy->checkpoint);
  response->set_digest(policy->digest);
  response->set_env_steps(policy->env_steps);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace skein
