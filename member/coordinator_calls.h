// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/net/call_deadline.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "grpcpp/client_context.h"
#include "skein/v1/coordinator_service.grpc.pb.h"

// Calls a coordinator, or the standby that has taken its place.
namespace skein {

// Whether a call got no answer: no coordinator is reachable, or the network is slow.
inline bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Makes unary calls to a coordinator and its standbys, of which one answers at a time. After a call without an answer,
// the next call uses the next address.   CoordinatorClient -> CoordinatorCalls -> channel to one address
// A call is a function (Coordinator::Stub*, ClientContext*) -> grpc::Status. Thread-safe.
class CoordinatorCalls {
 public:
  // REQUIRES: at least one address.
  explicit CoordinatorCalls(std::vector<std::string> addresses);

  // Runs one call. `waits_long`: a timeout does not mean that the coordinator is unreachable, so the address stays.
  // Cancelled: Cancel() was called, before or during the call. Other errors as the call's.
  template <typename Function>
  absl::Status Call(absl::Duration timeout, Function call, bool waits_long = false) ABSL_LOCKS_EXCLUDED(mu_) {
    grpc::ClientContext context;
    SetTimeout(&context, timeout);
    std::shared_ptr<Connection> connection;
    {
      absl::MutexLock lock(&mu_);
      if (cancelled_) return absl::CancelledError("the client has been stopped");
      calls_.insert(&context);
      connection = connection_;
    }
    const absl::Status status = FromGrpc(call(connection->stub.get(), &context));
    {
      absl::MutexLock lock(&mu_);
      calls_.erase(&context);
    }
    if (absl::IsUnavailable(status) || (absl::IsDeadlineExceeded(status) && !waits_long)) TryAnother(connection);
    return status;
  }

  // Runs the call with each address in turn until one answers or `timeout` is over. It also works after Cancel().
  template <typename Function>
  absl::Status CallAny(absl::Duration timeout, Function call) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Duration deadline = MonotonicNow() + timeout;
    absl::Status status;
    for (size_t attempt = 0; attempt < addresses_.size(); ++attempt) {
      const std::shared_ptr<Connection> connection = CurrentConnection();
      grpc::ClientContext context;
      SetTimeout(&context, deadline - MonotonicNow());
      status = FromGrpc(call(connection->stub.get(), &context));
      if (!IsAway(status)) break;
      TryAnother(connection);
    }
    return status;
  }

  // Cancels all calls in progress; later calls fail at once until Resume().
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);
  void Resume() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A connection to one of the addresses; immutable.
  struct Connection {
    size_t address = 0;  // Index into addresses_.
    std::unique_ptr<v1::Coordinator::Stub> stub;
  };

  std::shared_ptr<Connection> Connect(size_t address) const;
  std::shared_ptr<Connection> CurrentConnection() const ABSL_LOCKS_EXCLUDED(mu_);
  // Called after no answer came through `tried`: the next call uses the next address. With a single address too it
  // makes a new channel, because gRPC's own back-off would refuse calls for longer than Skein's.
  void TryAnother(const std::shared_ptr<Connection>& tried) ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<std::string> addresses_;
  mutable absl::Mutex mu_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mu_);  // Never null.
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
