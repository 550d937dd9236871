// SPDX-License-Identifier: Apache-2.0
#include "coordinator/external_scaler.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"

namespace skein {
namespace {

using externalscaler::IsActiveResponse;

constexpr char kMetric[] = "wanted_actors";

absl::StatusOr<ActorBounds> BoundsOf(const externalscaler::ScaledObjectRef& object) {
  const auto& metadata = object.scalermetadata();
  return ParseActorBounds({metadata.begin(), metadata.end()});
}

grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

// One caller that receives each change. At most one write is in progress; later changes are sent after it. Lives until
// gRPC calls OnDone(), and as long as another owner holds it.
class ExternalScaler::Stream final : public grpc::ServerWriteReactor<IsActiveResponse> {
 public:
  explicit Stream(ExternalScaler* scaler) : scaler_(scaler) {}

  void KeepUntilDone(std::shared_ptr<Stream> self) { self_ = std::move(self); }

  void Send(bool active) {
    {
      absl::MutexLock lock(&mu_);
      if (end_ || (told_ == active && !next_)) return;
      next_ = active;
    }
    GoOn();
  }
  void End(const grpc::Status& status) {
    {
      absl::MutexLock lock(&mu_);
      if (end_) return;
      end_ = status;
    }
    GoOn();
  }

  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&mu_);
      writing_ = false;
      if (!ok && !end_) end_ = grpc::Status::CANCELLED;
    }
    GoOn();
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    const std::shared_ptr<Stream> self = std::move(self_);
    scaler_->Forget(self);
  }

 private:
  // Does what is due, unless a write is under way.
  void GoOn() ABSL_LOCKS_EXCLUDED(mu_) {
    std::optional<grpc::Status> end;
    {
      absl::MutexLock lock(&mu_);
      if (writing_ || finished_) return;
      if (end_) {
        finished_ = true;
        end = end_;
      } else if (next_) {
        writing_ = true;
        told_ = std::exchange(next_, std::nullopt);
        response_.set_result(*told_);
      } else {
        return;
      }
    }
    if (end) {
      Finish(*end);
    } else {
      StartWrite(&response_);
    }
  }

  ExternalScaler* const scaler_;
  std::shared_ptr<Stream> self_;
  IsActiveResponse response_;  // Of the write under way.

  absl::Mutex mu_;
  std::optional<bool> told_ ABSL_GUARDED_BY(mu_);
  std::optional<bool> next_ ABSL_GUARDED_BY(mu_);
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

uint32_t ExternalScaler::Observe(const v1::StatusResponse& status) {
  std::set<std::shared_ptr<Stream>> streams;
  bool active = false;
  uint32_t wanted = 0;
  {
    absl::MutexLock lock(&mu_);
    demand_.Observe(status);
    active = demand_.active();
    wanted = demand_.Wanted(ActorBounds());
    streams = streams_;
  }
  for (const auto& stream : streams) stream->Send(active);
  return wanted;
}

void ExternalScaler::Shutdown() {
  std::set<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) {
    stream->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down"));
  }
}

void ExternalScaler::Forget(const std::shared_ptr<Stream>& stream) {
  absl::MutexLock lock(&mu_);
  streams_.erase(stream);
}

grpc::ServerUnaryReactor* ExternalScaler::IsActive(grpc::CallbackServerContext* context,
                                                   const externalscaler::ScaledObjectRef* request,
                                                   IsActiveResponse* response) {
  const absl::Status status = BoundsOf(*request).status();
  if (status.ok()) {
    absl::MutexLock lock(&mu_);
    response->set_result(demand_.active());
  }
  return FinishNow(context, status);
}

grpc::ServerWriteReactor<IsActiveResponse>* ExternalScaler::StreamIsActive(
    grpc::CallbackServerContext*, const externalscaler::ScaledObjectRef* request) {
  auto stream = std::make_shared<Stream>(this);
  stream->KeepUntilDone(stream);
  const absl::Status status = BoundsOf(*request).status();
  bool active = false, stopping = false;
  {
    absl::MutexLock lock(&mu_);
    active = demand_.active();
    stopping = stopping_;
    if (!stopping && status.ok()) streams_.insert(stream);
  }
  if (!status.ok()) {
    stream->End(ToGrpc(status));
  } else if (stopping) {
    stream->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down"));
  } else {
    stream->Send(active);
  }
  return stream.get();
}

grpc::ServerUnaryReactor* ExternalScaler::GetMetricSpec(grpc::CallbackServerContext* context,
                                                        const externalscaler::ScaledObjectRef* request,
                                                        externalscaler::GetMetricSpecResponse* response) {
  const absl::Status status = BoundsOf(*request).status();
  if (status.ok()) {
    externalscaler::MetricSpec* spec = response->add_metricspecs();
    spec->set_metricname(kMetric);
    spec->set_targetsize(1);
    spec->set_targetsizefloat(1);
  }
  return FinishNow(context, status);
}

grpc::ServerUnaryReactor* ExternalScaler::GetMetrics(grpc::CallbackServerContext* context,
                                                     const externalscaler::GetMetricsRequest* request,
                                                     externalscaler::GetMetricsResponse* response) {
  if (request->metricname() != kMetric) {
    return FinishNow(context, absl::InvalidArgumentError(
                                  absl::StrCat("there is '", kMetric, "' only, not '", request->metricname(), "'")));
  }
  const absl::StatusOr<ActorBounds> bounds = BoundsOf(request->scaledobjectref());
  if (!bounds.ok()) return FinishNow(context, bounds.status());
  absl::MutexLock lock(&mu_);
  const uint32_t wanted = demand_.Wanted(*bounds);
  externalscaler::MetricValue* value = response->add_metricvalues();
  value->set_metricname(kMetric);
  value->set_metricvalue(wanted);
  value->set_metricvaluefloat(wanted);
  return FinishNow(context, absl::OkStatus());
}

}  // namespace skein
