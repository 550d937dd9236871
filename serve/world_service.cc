// SPDX-License-Identifier: Apache-2.0
#include "serve/world_service.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "base/process/message_text.h"
#include "env/external/remote_messages.h"
#include "env/external/world_spec.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr uint32_t kMostEnvs = 65536;         // Of rollout.envs_per_runner.
constexpr size_t kRoomForFailures = 1 << 20;  // In a message, beside the columns.

}  // namespace

grpc::Status WorldService::Serve(grpc::ServerContext* context, Stream* stream) {
  const absl::Cleanup leave = [this] { --streams_; };
  if (++streams_ > options_.most_streams) {
    return ToGrpc(absl::ResourceExhaustedError(absl::StrCat(
        "it serves ", options_.most_streams, " env groups already (--max-streams); start another server")));
  }
  const absl::Status status = ServeStream([context] { return context->IsCancelled(); }, stream);
  if (absl::IsUnavailable(status)) spdlog::warn("a stream has ended: {}", OneLine(status.message()));
  return ToGrpc(status);
}

absl::StatusOr<std::unique_ptr<World>> WorldService::Open(const env::v1::Hello& hello, const GivenUp& given_up) const {
  if (hello.version() != WorldHead::kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("it speaks version ", WorldHead::kVersion, " of skein.env.v1"));
  }
  if (!options_.name.empty() && hello.environment() != options_.name) {
    return absl::NotFoundError(
        absl::StrCat("no environment ", Quoted(hello.environment()), "; there is ", Quoted(options_.name)));
  }
  if (hello.num_envs() < 1 || hello.num_envs() > kMostEnvs) {
    return absl::InvalidArgumentError(absl::StrCat("num_envs is ", hello.num_envs(), ", want 1 to ", kMostEnvs));
  }
  auto world = options_.open(hello, given_up);
  if (!world.ok()) return world.status();
  const size_t bytes = ReplyBytes((*world)->spec(), hello.num_envs()), most = kMaxMessageBytes - kRoomForFailures;
  if (bytes > most) {
    return absl::InvalidArgumentError(absl::StrCat("an answer of ", hello.num_envs(), " environments has ", bytes,
                                                   " bytes, want at most ", most, "; lower rollout.envs_per_runner"));
  }
  return world;
}

absl::Status WorldService::ServeStream(const GivenUp& given_up, Stream* stream) {
  env::v1::ClientMessage first;
  if (!stream->Read(&first)) return absl::OkStatus();
  if (!first.has_hello()) return absl::InvalidArgumentError("the first message is no hello");
  env::v1::ServerMessage answer;
  const auto world = Open(first.hello(), given_up);
  if (absl::IsCancelled(world.status())) return world.status();
  if (!world.ok()) {
    answer.mutable_failure()->set_message(OneLine(world.status().message()));
    answer.mutable_failure()->set_unusable(!absl::IsUnavailable(world.status()) &&
                                           !absl::IsDeadlineExceeded(world.status()));
    stream->Write(answer);
    return absl::OkStatus();
  }
  env::v1::Welcome& welcome = *answer.mutable_welcome();
  welcome.set_version(WorldHead::kVersion);
  *welcome.mutable_spec() = WriteSpec((*world)->spec());
  welcome.mutable_spec()->set_name((*world)->spec().id);
  welcome.set_server((*world)->server());
  return stream->Write(answer) ? ServeWorld(world->get(), stream) : absl::OkStatus();
}

absl::Status WorldService::ServeWorld(World* world, Stream* stream) const {
  env::v1::ClientMessage request;
  env::v1::ServerMessage answer;
  env::v1::Reply& reply = *answer.mutable_reply();
  while (stream->Read(&request)) {
    const auto kind = TakeRequest(request, world->spec(), world->size(), world->columns());
    if (!kind.ok()) return kind.status();
    const absl::Status status = world->Exchange(*kind, options_.step_timeout);
    if (absl::IsCancelled(status)) return status;
    if (!status.ok()) return absl::UnavailableError(OneLine(status.message()));
    reply.set_sequence(request.has_step() ? request.step().sequence() : request.reset().sequence());
    PutReply(world->columns(), world->spec(), world->size(), &reply);
    reply.clear_failures();
    for (env::v1::Failure& failure : world->TakeFailures()) *reply.add_failures() = std::move(failure);
    if (!stream->Write(answer)) break;
  }
  return absl::OkStatus();
}

}  // namespace skein
