// SPDX-License-Identifier: Apache-2.0
#include "env/external/remote_world.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/message_text.h"
#include "env/external/remote_messages.h"
#include "env/external/welcome.h"
#include "grpc/support/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "skein/env/v1/environment.grpc.pb.h"

namespace skein {
namespace {

// How long the server may take to say why it has ended a stream.
constexpr absl::Duration kForItsReason = absl::Seconds(2);
// How often a wait asks whether it was given up.
constexpr absl::Duration kAskAgain = absl::Milliseconds(20);

gpr_timespec Deadline(absl::Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

class RemoteWorld final : public World {
 public:
  explicit RemoteWorld(const RemoteWorldOptions& options)
      : options_(options), stub_(env::v1::Environment::NewStub(OpenChannel(options.address))) {}
  ~RemoteWorld() override {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
  }

  absl::Status Open();

  const EnvSpec& spec() const override { return spec_; }
  const std::string& server() const override { return server_; }
  size_t size() const override { return options_.count; }
  const WorldColumns& columns() const override { return columns_; }
  absl::Status Exchange(WorldRequest request, absl::Duration timeout) override;
  std::vector<env::v1::Failure> TakeFailures() override { return std::exchange(failures_, {}); }

 private:
  // Waits for the operations under way. Unavailable or what the server's status says: the stream has ended.
  absl::Status Await(int operations, absl::Duration timeout, const char* setting);
  // Sends `sent_` and waits for `received_`.
  absl::Status Ask(absl::Duration timeout, const char* setting);
  std::string Column(const void* data, size_t bytes) const { return {static_cast<const char*>(data), bytes}; }

  const RemoteWorldOptions options_;
  const std::unique_ptr<env::v1::Environment::Stub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<env::v1::ClientMessage, env::v1::ServerMessage>> stream_;
  env::v1::ClientMessage sent_;
  env::v1::ServerMessage received_;
  grpc::Status ended_;  // Of the stream; written until the queue is drained.
  EnvSpec spec_;
  std::string server_;
  std::vector<char> memory_;
  WorldColumns columns_ = {};
  uint64_t sequence_ = 0;
  std::vector<env::v1::Failure> failures_;
};

absl::Status RemoteWorld::Await(int operations, absl::Duration timeout, const char* setting) {
  const absl::Duration deadline = MonotonicNow() + timeout;
  void* tag = nullptr;
  bool ok = true;
  for (; operations > 0 && ok; --operations) {
    while (
        queue_.AsyncNext(&tag, &ok, Deadline(std::clamp(deadline - MonotonicNow(), absl::ZeroDuration(), kAskAgain))) ==
        grpc::CompletionQueue::TIMEOUT) {
      if (options_.given_up()) return absl::CancelledError("no caller waits for its server any longer");
      if (MonotonicNow() < deadline) continue;
      return absl::DeadlineExceededError(absl::StrCat("its server at ", options_.address, " has not answered within ",
                                                      absl::ToDoubleSeconds(timeout), " s (", setting, ")"));
    }
  }
  if (ok) return absl::OkStatus();
  stream_->Finish(&ended_, this);
  const gpr_timespec latest = Deadline(kForItsReason);
  do {
    if (queue_.AsyncNext(&tag, &ok, latest) != grpc::CompletionQueue::GOT_EVENT) {
      return absl::UnavailableError(absl::StrCat("its server at ", options_.address, " has ended the stream"));
    }
  } while (tag != this);
  const absl::Status status = FromGrpc(ended_);
  if (status.ok())
    return absl::UnavailableError(absl::StrCat("its server at ", options_.address, " has ended the stream"));
  return absl::Status(status.code(), absl::StrCat("its server at ", options_.address, ": ", OneLine(status.message())));
}

absl::Status RemoteWorld::Ask(absl::Duration timeout, const char* setting) {
  stream_->Write(sent_, nullptr);
  stream_->Read(&received_, nullptr);
  return Await(2, timeout, setting);
}

absl::Status RemoteWorld::Open() {
  constexpr char kSetting[] = "env.external.start_timeout_seconds";
  stream_ = stub_->PrepareAsyncServe(&context_, &queue_);
  stream_->StartCall(nullptr);
  if (absl::Status status = Await(1, options_.start_timeout, kSetting); !status.ok()) return status;
  env::v1::Hello& hello = *sent_.mutable_hello();
  hello.set_version(WorldHead::kVersion);
  hello.set_environment(options_.name);
  hello.set_arguments(options_.arguments);
  hello.set_num_envs(static_cast<uint32_t>(options_.count));
  if (absl::Status status = Ask(options_.start_timeout, kSetting); !status.ok()) return status;
  auto welcomed = TakeWelcome(received_, options_.id);
  if (!welcomed.ok()) return welcomed.status();
  spec_ = std::move(welcomed->spec);
  server_ = std::move(welcomed->server);
  memory_.resize(LayOutWorld(spec_, options_.count, nullptr, &columns_));
  LayOutWorld(spec_, options_.count, memory_.data(), &columns_);
  return absl::OkStatus();
}

absl::Status RemoteWorld::Exchange(WorldRequest request, absl::Duration timeout) {
  constexpr char kSetting[] = "rollout.step_timeout_seconds";
  const size_t E = options_.count;
  ++sequence_;
  if (request == WorldRequest::kStep) {
    env::v1::Step& step = *sent_.mutable_step();
    step.set_sequence(sequence_);
    step.set_action(Column(columns_.action, E * WorldRow(spec_).action * sizeof(float)));
    step.set_next_seed(Column(columns_.seed, E * sizeof(uint32_t)));
  } else {
    env::v1::Reset& reset = *sent_.mutable_reset();
    reset.set_sequence(sequence_);
    reset.set_mask(Column(columns_.mask, E));
    reset.set_seed(Column(columns_.seed, E * sizeof(uint32_t)));
  }
  if (absl::Status status = Ask(timeout, kSetting); !status.ok()) return status;
  if (!received_.has_reply() || received_.reply().sequence() != sequence_) {
    return absl::DataLossError(absl::StrCat("its server at ", options_.address, " answered another request"));
  }
  constexpr int kMostFailures = 64;
  const auto& failures = received_.reply().failures();
  failures_.assign(failures.begin(), failures.begin() + std::min(failures.size(), kMostFailures));
  return TakeReply(received_.reply(), spec_, E, request, columns_);
}

}  // namespace

absl::StatusOr<std::unique_ptr<World>> OpenRemoteWorld(const RemoteWorldOptions& options) {
  auto world = std::make_unique<RemoteWorld>(options);
  if (absl::Status status = world->Open(); !status.ok()) return status;
  return world;
}

}  // namespace skein
