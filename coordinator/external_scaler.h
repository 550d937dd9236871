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

// Reports how many actors a run can use to KEDA and other clients of its protocol.   ActorDemand -> replicas
// It serves one metric, `wanted_actors`, with a target of 1, so that the number of replicas equals the number of wanted
// actors. Trigger metadata are parsed by ParseActorBounds(). Active until the run is over.
// Thread-safe. Must outlive the server it is registered with. INVALID_ARGUMENT: bad metadata, or another metric's name.
class ExternalScaler final : public externalscaler::ExternalScaler::CallbackService {
 public:
  explicit ExternalScaler(const v1::RunConfig& config) : demand_(config) {}

  // Call after each change of members or of the run's progress. Returns the number of actors wanted, without bounds.
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
