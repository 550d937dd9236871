// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/actor_demand.h"
#include "keda/external_scaler.grpc.pb.h"

namespace skein {

// The number of actors that a run can use, for KEDA and other clients of its protocol.   ActorDemand -> replicas
// One figure, `wanted_actors`, with a target of 1: as many replicas as actors are wanted. The trigger's metadata are
// those of ParseActorBounds(). Active until the run is over. Thread-safe. Must outlive the server it is registered
// with. INVALID_ARGUMENT: the metadata, or another metric's name.
class ExternalScaler final : public externalscaler::ExternalScaler::CallbackService {
 public:
  explicit ExternalScaler(const v1::RunConfig& config) : demand_(config) {}

  // Takes what a learner's heartbeat has changed. Returns what is wanted within no bounds.
  uint32_t Observe(const v1::StatusResponse& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends open streams with UNAVAILABLE, and refuses new ones. Idempotent.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ServerUnaryReactor* IsActive(grpc::CallbackServerContext* context,
                                     const externalscaler::ScaledObjectRef* request,
                                     externalscaler::IsActiveResponse* response) override;
  grpc::ServerWriteReactor<externalscaler::IsActiveResponse>* StreamIsActive(
      grpc::CallbackServerContext* context, const externalscaler::ScaledObjectRef* request) override;
  grpc::ServerUnaryReactor* GetMetricSpec(grpc::CallbackServerContext* context,
                                          const externalscaler::ScaledObjectRef* request,
                                          externalscaler::GetMetricSpecResponse* response) override;
  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context,
                                       const externalscaler::GetMetricsRequest* request,
                                       externalscaler::GetMetricsResponse* response) override;

 private:
  class Stream;
  void Forget(const std::shared_ptr<Stream>& stream) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  ActorDemand demand_ ABSL_GUARDED_BY(mu_);
  std::set<std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace skein
