// SPDX-License-Identifier: Apache-2.0
// The scaler as KEDA calls it.
#include "coordinator/external_scaler.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "base/net/grpc_transport.h"
#include "coordinator/coordinator.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/base/health_check.h"
#include "tests/testing/http_get.h"

namespace skein {
namespace {

using externalscaler::GetMetricsResponse;
using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;
using testing::HasSubstr;
using Metadata = std::map<std::string, std::string>;

// What KEDA does.
class Keda {
 public:
  explicit Keda(const std::string& address) : stub_(externalscaler::ExternalScaler::NewStub(OpenChannel(address))) {}

  static ScaledObjectRef Object(const Metadata& metadata) {
    ScaledObjectRef object;
    object.set_name("run-actor");
    object.set_namespace_("training");
    for (const auto& [key, value] : metadata) (*object.mutable_scalermetadata())[key] = value;
    return object;
  }
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  }

  absl::StatusOr<bool> IsActive(const Metadata& metadata = {}) {
    grpc::ClientContext context;
    SetDeadline(&context);
    IsActiveResponse response;
    const absl::Status status = FromGrpc(stub_->IsActive(&context, Object(metadata), &response));
    if (!status.ok()) return status;
    return response.result();
  }
  absl::StatusOr<externalscaler::GetMetricSpecResponse> GetMetricSpec(const Metadata& metadata = {}) {
    grpc::ClientContext context;
    SetDeadline(&context);
    externalscaler::GetMetricSpecResponse response;
    const absl::Status status = FromGrpc(stub_->GetMetricSpec(&context, Object(metadata), &response));
    if (!status.ok()) return status;
    return response;
  }
  absl::StatusOr<GetMetricsResponse> GetMetrics(const std::string& metric, const Metadata& metadata) {
    grpc::ClientContext context;
    SetDeadline(&context);
    externalscaler::GetMetricsRequest request;
    *request.mutable_scaledobjectref() = Object(metadata);
    request.set_metricname(metric);
    GetMetricsResponse response;
    const absl::Status status = FromGrpc(stub_->GetMetrics(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }
  // ceil(value / target); -1 and a failed test if there is no figure.
  int Replicas(const Metadata& metadata = {}) {
    const auto spec = GetMetricSpec(metadata);
    EXPECT_TRUE(spec.ok()) << spec.status();
    if (!spec.ok() || spec->metricspecs_size() != 1) return -1;
    const auto values = GetMetrics(spec->metricspecs(0).metricname(), metadata);
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok() || values->metricvalues_size() != 1) return -1;
    const externalscaler::MetricValue& value = values->metricvalues(0);
    EXPECT_EQ(value.metricname(), spec->metricspecs(0).metricname());
    EXPECT_EQ(value.metricvaluefloat(), static_cast<double>(value.metricvalue()));
    EXPECT_EQ(spec->metricspecs(0).targetsizefloat(), static_cast<double>(spec->metricspecs(0).targetsize()));
    return static_cast<int>(std::ceil(value.metricvaluefloat() / spec->metricspecs(0).targetsizefloat()));
  }
  externalscaler::ExternalScaler::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<externalscaler::ExternalScaler::Stub> stub_;
};

// The scaler alone, which is told what the test wants.
class ExternalScalerTest : public testing::Test {
 protected:
  ExternalScalerTest() {
    server_ = *StartGrpcServer("127.0.0.1:0", &scaler_, &port_);
    keda_ = std::make_unique<Keda>(JoinHostPort("127.0.0.1", port_));
  }
  ~ExternalScalerTest() override {
    scaler_.Shutdown();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  }

  // Twenty actors and a learner that has waited for half of the time, `seconds` after the start.
  static v1::StatusResponse Status(double seconds, v1::RunState state = v1::RUN_STATE_TRAINING) {
    v1::StatusResponse status;
    status.set_uptime_seconds(seconds);
    v1::RunProgress* progress = status.mutable_progress();
    progress->set_state(state);
    progress->set_iteration(static_cast<uint64_t>(seconds));
    (*progress->mutable_stage_seconds())["barrier"] = seconds / 2;
    (*progress->mutable_stage_seconds())["update"] = seconds / 2;
    for (int i = 0; i < 21; ++i) {
      v1::MemberStatus* member = status.add_members();
      member->set_member_id(std::to_string(i));
      member->set_role(i == 0 ? "learner" : "actor");
    }
    return status;
  }

  static v1::RunConfig Config() {
    v1::RunConfig config;
    config.mutable_sync()->set_mode(v1::SYNC_MODE_OVERLAPPED);
    return config;
  }

  ExternalScaler scaler_{Config()};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Keda> keda_;
};

TEST_F(ExternalScalerTest, KedaScalesToWhatWasMeasuredWithinTheTriggersBounds) {
  scaler_.Observe(Status(0));
  EXPECT_EQ(keda_->Replicas(), 20);
  for (const double seconds : {1.0, 12.0, 30.0}) scaler_.Observe(Status(seconds));
  EXPECT_EQ(keda_->Replicas(), 32);  // 20 x (1 - 0.2) / (1 - 0.5)
  EXPECT_EQ(keda_->Replicas({{"targetWaitRatio", "0.25"}}), 30);
  EXPECT_EQ(keda_->Replicas({{"maxActors", "24"}, {"scalerAddress", "skein:7070"}}), 24);
  EXPECT_EQ(keda_->Replicas({{"minActors", "40"}}), 40);
}

TEST_F(ExternalScalerTest, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(absl::IsInvalidArgument(keda_->GetMetrics("s0-wanted_actors", {}).status()));
  const Metadata wrong{{"targetWaitRatio", "2"}};
  for (const absl::Status& status : {keda_->IsActive(wrong).status(), keda_->GetMetricSpec(wrong).status(),
                                     keda_->GetMetrics("wanted_actors", wrong).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("targetWaitRatio"));
  }
  grpc::ClientContext context;
  Keda::SetDeadline(&context);
  IsActiveResponse response;
  const auto stream = keda_->stub().StreamIsActive(&context, Keda::Object(wrong));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ExternalScalerTest, AStreamHearsAtOnceAndOfEachChange) {
  grpc::ClientContext context;
  Keda::SetDeadline(&context);
  const auto stream = keda_->stub().StreamIsActive(&context, Keda::Object({}));
  IsActiveResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.result());
  scaler_.Observe(Status(1));  // No change: nothing to hear.
  scaler_.Observe(Status(2, v1::RUN_STATE_FINISHED));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.result());
  scaler_.Observe(Status(3));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.result());
  scaler_.Shutdown();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ExternalScalerTest, AStreamWhoseCallerIsGoneHoldsUpNobody) {
  grpc::ClientContext context;
  const auto stream = keda_->stub().StreamIsActive(&context, Keda::Object({}));
  IsActiveResponse response;
  ASSERT_TRUE(stream->Read(&response));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  scaler_.Observe(Status(1, v1::RUN_STATE_FINISHED));
  EXPECT_EQ(keda_->IsActive().value_or(true), false);
}

TEST_F(ExternalScalerTest, RefusesStreamsOnceItIsShutDown) {
  scaler_.Shutdown();
  grpc::ClientContext context;
  Keda::SetDeadline(&context);
  const auto stream = keda_->stub().StreamIsActive(&context, Keda::Object({}));
  IsActiveResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// A whole coordinator, as in a cluster.
class CoordinatorScalerTest : public testing::Test {
 protected:
  CoordinatorScalerTest() {
    CoordinatorOptions options;
    options.listen = "127.0.0.1:0";
    coordinator_ = *Coordinator::Start(options);
    members_ = v1::Coordinator::NewStub(OpenChannel(coordinator_->grpc_address()));
    keda_ = std::make_unique<Keda>(coordinator_->grpc_address());
  }

  v1::JoinResponse Join(v1::Role role) {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(role);
    request.set_data_address(":7000");
    request.set_runners(1);
    grpc::ClientContext context;
    Keda::SetDeadline(&context);
    v1::JoinResponse response;
    const grpc::Status status = members_->Join(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  void Leave(const v1::JoinResponse& member, v1::RunState state) {
    v1::LeaveRequest request;
    request.set_member_id(member.member_id());
    request.set_generation(member.generation());
    request.mutable_progress()->set_state(state);
    grpc::ClientContext context;
    Keda::SetDeadline(&context);
    v1::LeaveResponse response;
    EXPECT_TRUE(members_->Leave(&context, request, &response).ok());
  }
  std::string Metrics() { return HttpGet(ParseHostPort(coordinator_->http_address())->port, "/metrics").body; }

  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<v1::Coordinator::Stub> members_;
  std::unique_ptr<Keda> keda_;
};

TEST_F(CoordinatorScalerTest, FollowsTheRun) {
  EXPECT_EQ(keda_->IsActive().value_or(false), true);
  EXPECT_EQ(keda_->Replicas(), 1);
  const v1::JoinResponse learner = Join(v1::ROLE_LEARNER);
  Join(v1::ROLE_ACTOR);
  EXPECT_EQ(keda_->Replicas(), 1);
  EXPECT_THAT(Metrics(), HasSubstr("\nskein_coordinator_wanted_actors 1\n"));
  Leave(learner, v1::RUN_STATE_FINISHED);
  EXPECT_EQ(keda_->IsActive().value_or(true), false);
  EXPECT_EQ(keda_->Replicas(), 0);
  EXPECT_EQ(keda_->Replicas({{"minActors", "1"}}), 1);
  EXPECT_THAT(Metrics(), HasSubstr("\nskein_coordinator_wanted_actors 0\n"));
}

TEST_F(CoordinatorScalerTest, IsReadyOnceItHasStarted) {
  const int port = ParseHostPort(coordinator_->grpc_address())->port;
  EXPECT_EQ(CheckHealth(port, ""), "SERVING");
  EXPECT_EQ(CheckHealth(port, kReadiness), "SERVING");
}

}  // namespace
}  // namespace skein
