// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/external/world.h"
#include "skein/env/v1/environment.grpc.pb.h"

namespace skein {

// The service skein.env.v1.Environment: worlds for actors on other machines.
//   ClientMessage -> TakeRequest -> World::Exchange -> PutReply -> ServerMessage
// Each stream has a world of its own, which ends with it, and one of gRPC's threads: a world that hangs holds up no
// other stream (docs/decisions/grpc-callbacks.md). Thread-safe. Must outlive the server it is registered with.
// Errors are those of environment.proto, and ResourceExhausted: too many streams. Unavailable: the stream's world has
// ended, has not answered in time or breaks the protocol; the message says how. Cancelled: the client is gone.
class WorldService final : public env::v1::Environment::Service {
 public:
  using GivenUp = std::function<bool()>;  // As LocalWorldOptions::given_up.
  struct Options {
    std::string name;        // Of the environment, as Hello has it. Empty: any.
    int most_streams = 256;  // At a time.
    absl::Duration step_timeout = absl::Seconds(60);
    std::function<absl::StatusOr<std::unique_ptr<World>>(const env::v1::Hello& hello, GivenUp given_up)> open;
  };
  explicit WorldService(Options options) : options_(std::move(options)) {}

  using Stream = grpc::ServerReaderWriter<env::v1::ServerMessage, env::v1::ClientMessage>;
  grpc::Status Serve(grpc::ServerContext* context, Stream* stream) override;

 private:
  absl::Status ServeStream(const GivenUp& given_up, Stream* stream);
  // The world that `hello` asks for. Unavailable, DeadlineExceeded: there is none now. Cancelled: the client is gone.
  // Others: there never will be one.
  absl::StatusOr<std::unique_ptr<World>> Open(const env::v1::Hello& hello, const GivenUp& given_up) const;
  absl::Status ServeWorld(World* world, Stream* stream) const;

  const Options options_;
  std::atomic<int> streams_{0};
};

}  // namespace skein
