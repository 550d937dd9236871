// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
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

// One Collect call to a learner. It runs on gRPC's threads and on threads that call Pump; no thread waits for its reads
// or writes.
//   Pump -> next -> learner -> on_response
// Thread-safe.
class CollectCall final : private grpc::ClientBidiReactor<grpc::ByteBuffer, v1::CollectResponse> {
 public:
  struct Request {
    grpc::ByteBuffer bytes;
    bool last = false;
  };
  // Callbacks. None may block. No callback is called twice at the same time.
  struct Options {
    std::function<std::optional<Request>()> next;  // What to send now; nullopt: nothing, until the next Pump.
    std::function<void(const v1::CollectResponse&)> on_response;
    // A request from `next`, other than the last one, was written. Argument: the time since that call of `next`.
    std::function<void(absl::Duration)> on_sent;
    std::function<void()> on_done;  // The call is over; no callback follows.
  };
  explicit CollectCall(Options options) : options_(std::move(options)) {}

  // Makes the call and sends `first`, before any request of `next`. Call it once; channel and context outlive the call.
  void Start(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context, grpc::ByteBuffer first);
  // Sends what `next` returns, now or after the write in progress. REQUIRES: Start was called.
  void Pump();
  // Blocks until on_done has returned; returns how the call ended. REQUIRES: Start was called; Pump is not called
  // afterwards.
  absl::Status Wait();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  // True once: when the call is over and no thread is about to send. The caller that gets true removes the hold.
  bool TakeRelease() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  v1::CollectResponse response_;  // Of the read in progress.
  // Used by the thread that set sending_.
  grpc::ByteBuffer request_;
  absl::Duration began_;
  bool tell_ = false;  // Whether to call on_sent.

  absl::Mutex mu_;
  bool sending_ ABSL_GUARDED_BY(mu_) = true;  // A write or a call of `next` is in progress.
  bool pumped_ ABSL_GUARDED_BY(mu_) = false;  // Pump was called meanwhile.
  bool last_ ABSL_GUARDED_BY(mu_) = false;    // The last request is being sent or was sent.
  bool over_ ABSL_GUARDED_BY(mu_) = false;    // No more responses will come.
  bool released_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
