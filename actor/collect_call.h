// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"
#include "skein/v1/learner_service.grpc.pb.h"

namespace skein {

// One Collect call to a learner. gRPC's threads drive it, and whoever calls Pump: no thread waits for it to read or
// write.
//   Pump -> next -> learner -> on_response
// Thread-safe.
class CollectCall final : private grpc::ClientBidiReactor<grpc::ByteBuffer, v1::CollectResponse> {
 public:
  struct Request {
    grpc::ByteBuffer bytes;
    bool last = false;
  };
  // None of them may block. No two calls of the same one at once.
  struct Options {
    std::function<std::optional<Request>()> next;  // What to send now; nullopt: nothing, until the next Pump.
    std::function<void(const v1::CollectResponse&)> on_response;
    // A request that `next` gave, other than the last, was taken so long after `next` was asked for it.
    std::function<void(absl::Duration)> on_sent;
    std::function<void()> on_done;  // No other is called any more.
  };
  explicit CollectCall(Options options) : options_(std::move(options)) {}

  // Makes the call and sends `first`, which `next` is not asked for. Once; channel and context outlive the call.
  void Start(grpc::Channel* channel, grpc::ClientContext* context, grpc::ByteBuffer first);
  // There may be something to send: asks `next`, now or after what is being sent. REQUIRES: Start was called.
  void Pump();
  // Blocks until on_done has returned: how the call ended. REQUIRES: Start was called, and nobody pumps afterwards.
  absl::Status Wait();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  // Whether the call may end: it is over and nobody is about to send. Once; who gets it removes the hold.
  bool TakeRelease() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  v1::CollectResponse response_;  // Of the read that is under way.
  // Of whoever made sending_ true.
  grpc::ByteBuffer request_;
  absl::Duration began_;
  bool tell_ = false;  // on_sent.

  absl::Mutex mu_;
  bool sending_ ABSL_GUARDED_BY(mu_) = true;  // Or about to: `next` is being asked.
  bool pumped_ ABSL_GUARDED_BY(mu_) = false;  // Meanwhile.
  bool last_ ABSL_GUARDED_BY(mu_) = false;    // The last request is on its way or sent.
  bool over_ ABSL_GUARDED_BY(mu_) = false;    // Nothing more will come.
  bool released_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
