// SPDX-License-Identifier: Apache-2.0
#include "actor/collect_call.h"

#include <utility>

#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "grpcpp/generic/generic_stub.h"

namespace skein {
namespace {

constexpr char kCollect[] = "/skein.v1.Learner/Collect";

// The generated stub, but for requests, which are bytes.
using Stub = grpc::TemplatedGenericStub<grpc::ByteBuffer, v1::CollectResponse>;

}  // namespace

void CollectCall::Start(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context,
                        grpc::ByteBuffer first) {
  Stub(channel).PrepareBidiStreamingCall(context, kCollect, grpc::StubOptions(), this);
  AddHold();  // Pump starts writes from outside of reactions.
  request_ = std::move(first);
  StartWrite(&request_);
  StartRead(&response_);
  StartCall();
}

void CollectCall::Pump() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      pumped_ = true;
      if (sending_ || over_ || last_) return;
      sending_ = true;
      pumped_ = false;
    }
    began_ = MonotonicNow();
    if (std::optional<Request> request = options_.next()) {
      request_ = std::move(request->bytes);
      tell_ = !request->last;
      grpc::WriteOptions how;
      if (request->last) {
        how.set_last_message();
        absl::MutexLock lock(&mu_);
        last_ = true;
      }
      StartWrite(&request_, how);
      return;
    }
    bool release;
    {
      absl::MutexLock lock(&mu_);
      sending_ = false;
      release = TakeRelease();
      if (!release && (!pumped_ || over_)) return;
    }
    if (release) return RemoveHold();
  }
}

void CollectCall::OnWriteDone(bool ok) {
  if (ok && tell_) options_.on_sent(MonotonicNow() - began_);
  request_.Clear();
  bool release;
  {
    absl::MutexLock lock(&mu_);
    sending_ = false;
    if (!ok) last_ = true;  // The call has broken, which the read notices too.
    release = TakeRelease();
  }
  if (release) return RemoveHold();
  Pump();
}

void CollectCall::OnReadDone(bool ok) {
  if (ok) {
    options_.on_response(response_);
    StartRead(&response_);
    return;
  }
  bool release;
  {
    absl::MutexLock lock(&mu_);
    over_ = true;
    release = TakeRelease();
  }
  if (release) RemoveHold();
}

bool CollectCall::TakeRelease() { return over_ && !sending_ && !std::exchange(released_, true); }

void CollectCall::OnDone(const grpc::Status& status) {
  options_.on_done();
  absl::MutexLock lock(&mu_);
  status_ = FromGrpc(status);
  done_ = true;
}

absl::Status CollectCall::Wait() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&done_));
  return status_;
}

}  // namespace skein
