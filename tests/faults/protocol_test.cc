// SPDX-License-Identifier: Apache-2.0
// Peers of other versions, and of other environments, at real processes.
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/faults/stranger.h"
#include "tests/testing/old_hello.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FaultRow27 : public testing::Test {
 protected:
  FaultRow27() {
    cluster_.StartCoordinator();
    cluster_.StartLearner();
    stub_ = v1::Coordinator::NewStub(OpenChannel(CoordinatorAddress(&cluster_)));
    stranger_ = std::make_unique<Stranger>(ServingLearner(&cluster_));
  }
  v1::JoinRequest MakeJoin() const {
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_protocol_minor(kProtocolMinor);
    request.set_role(v1::ROLE_ACTOR);
    return request;
  }
  grpc::Status Join(const v1::JoinRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::JoinResponse response;
    return stub_->Join(&context, request, &response);
  }
  // What a stream ends with that begins so.
  grpc::Status Refusal(const v1::CollectRequest& hello) {
    stranger_->Open();
    stranger_->Send(hello);
    return stranger_->End();
  }
  bool Welcomed(const v1::CollectRequest& hello) {
    stranger_->Open();
    stranger_->Send(hello);
    const auto response = stranger_->Read();
    stranger_ = std::make_unique<Stranger>(LearnerAddress(&cluster_));  // Leaves.
    return response && response->has_welcome();
  }

  Cluster cluster_{{"total_steps=1000000000"}};
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  std::unique_ptr<Stranger> stranger_;
};

TEST_F(FaultRow27, AnotherMajorVersionIsRefusedNamingBoth) {
  const std::string theirs = absl::StrCat(kProtocolMajor + 1, ".3");
  const std::string ours = absl::StrCat(kProtocolMajor, ".", kProtocolMinor);
  v1::JoinRequest join = MakeJoin();
  join.set_protocol_major(kProtocolMajor + 1);
  join.set_protocol_minor(3);
  const grpc::Status refused = Join(join);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), AllOf(HasSubstr(theirs), HasSubstr(ours)));
  v1::CollectRequest hello = stranger_->Hello(1);
  hello.mutable_hello()->set_protocol_major(kProtocolMajor + 1);
  hello.mutable_hello()->set_protocol_minor(3);
  const grpc::Status sent_away = Refusal(hello);
  EXPECT_EQ(sent_away.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(sent_away.error_message(), AllOf(HasSubstr(theirs), HasSubstr(ours)));
}

TEST_F(FaultRow27, AnActorThatKnowsNoFramesIsRefusedNamingBoth) {
  stranger_->Open();
  stranger_->SendBytes(OldHello());
  const grpc::Status refused = stranger_->End();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.error_message(), "protocol 1.0 of the actor and 2.0 of the learner differ in their major version");
}

TEST_F(FaultRow27, AnotherMinorVersionIsAccepted) {
  for (const unsigned minor : {0u, kProtocolMinor, kProtocolMinor + 7}) {
    v1::JoinRequest join = MakeJoin();
    join.set_protocol_minor(minor);
    EXPECT_TRUE(Join(join).ok()) << minor;
    v1::CollectRequest hello = stranger_->Hello(10 + minor);
    hello.mutable_hello()->set_protocol_minor(minor);
    EXPECT_TRUE(Welcomed(hello)) << minor;
  }
}

TEST_F(FaultRow27, UnknownFieldsAreIgnored) {
  const auto add = [](google::protobuf::Message* message) {
    auto* unknown = message->GetReflection()->MutableUnknownFields(message);
    unknown->AddVarint(1000, 5);
    unknown->AddLengthDelimited(1001, "of a version to come");
    unknown->AddFixed64(1002, 7);
  };
  v1::JoinRequest join = MakeJoin();
  add(&join);
  EXPECT_TRUE(Join(join).ok());
  v1::CollectRequest hello = stranger_->Hello(1);
  add(&hello);
  add(hello.mutable_hello());
  add(hello.mutable_hello()->mutable_env_spec());
  EXPECT_TRUE(Welcomed(hello));
}

TEST_F(FaultRow27, AnotherEnvironmentIsRefusedNamingTheTensorThatDiffers) {
  v1::CollectRequest hello = stranger_->Hello(1);
  hello.mutable_hello()->mutable_env_spec()->set_obs_size(6);
  grpc::Status refused = Refusal(hello);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("env_spec.obs_size: the actor has 6, this run has 4, so field obs differs"));
  hello = stranger_->Hello(1);
  hello.mutable_hello()->mutable_env_spec()->set_action_size(3);
  refused = Refusal(hello);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("so field action differs"));
  EXPECT_TRUE(Welcomed(stranger_->Hello(1)));
}

}  // namespace
}  // namespace skein
