// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "skein/v1/learner_service.grpc.pb.h"

namespace skein {

// One SubscribePolicy call to a learner. It runs on gRPC's threads.   learner -> on_policy
// Not thread-safe.
class PolicyCall final : private grpc::ClientReadReactor<v1::PolicySnapshot> {
 public:
  // `on_policy` is called on gRPC's threads, never twice at the same time.
  explicit PolicyCall(std::function<void(const v1::PolicySnapshot&)> on_policy) : on_policy_(std::move(on_policy)) {}

  // Makes the call. Call it once; stub and context outlive it.
  void Start(v1::Learner::Stub* stub, grpc::ClientContext* context, const v1::SubscribePolicyRequest& request);
  // Blocks until the call is over and on_policy is no longer called. REQUIRES: Start was called.
  void Wait();

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const std::function<void(const v1::PolicySnapshot&)> on_policy_;
  v1::SubscribePolicyRequest request_;
  v1::PolicySnapshot snapshot_;  // Of the read in progress.
  absl::Mutex mu_;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
