// SPDX-License-Identifier: Apache-2.0
#include "actor/policy_call.h"

namespace skein {

void PolicyCall::Start(v1::Learner::Stub* stub, grpc::ClientContext* context,
                       const v1::SubscribePolicyRequest& request) {
  request_ = request;
  stub->async()->SubscribePolicy(context, &request_, this);
  StartRead(&snapshot_);
  StartCall();
}

void PolicyCall::OnReadDone(bool ok) {
  if (!ok) return;
  on_policy_(snapshot_);
  StartRead(&snapshot_);
}

void PolicyCall::OnDone(const grpc::Status&) {
  absl::MutexLock lock(&mu_);
  done_ = true;
}

void PolicyCall::Wait() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&done_));
}

}  // namespace skein
