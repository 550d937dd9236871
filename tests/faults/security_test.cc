// SPDX-License-Identifier: Apache-2.0
// Who has no credentials, or the wrong ones, at real processes.
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/net/call_authorization.h"
#include "base/net/grpc_transport.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "skein/v1/learner_service.grpc.pb.h"
#include "tests/faults/secured_cluster.h"
#include "tests/testing/collect_stream.h"
#include "tests/testing/http_get.h"

namespace skein {
namespace {

using testing::AllOf;

using testing::HasSubstr;
using testing::Not;

constexpr char kWrongToken[] = "f00df00df00df00df00df00df00df00d";

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
}

// What each call of a run's servers ends with, as it comes from somebody with these credentials who knows all names.
std::vector<absl::Status> CallEverything(SecuredCluster* run, const v1::StatusResponse& status,
                                         const Credentials& credentials) {
  const auto coordinator = v1::Coordinator::NewStub(OpenChannel(run->cluster().address(), credentials));
  const auto channel = OpenChannel(run->cluster().learner_address(), credentials);
  const auto learner = v1::Learner::NewStub(channel);
  std::string actor;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == "actor") actor = member.member_id();
  }
  std::vector<absl::Status> ends;
  const auto call = [&ends](auto&& method, auto request, auto response) {
    grpc::ClientContext context;
    SetDeadline(&context);
    ends.push_back(FromGrpc(method(&context, request, &response)));
  };
  v1::JoinRequest join;
  join.set_protocol_major(kProtocolMajor);
  join.set_role(v1::ROLE_ACTOR);
  call([&](auto... a) { return coordinator->Join(a...); }, join, v1::JoinResponse());
  v1::LeaveRequest leave;
  leave.set_member_id(actor);
  call([&](auto... a) { return coordinator->Leave(a...); }, leave, v1::LeaveResponse());
  v1::DrainRequest drain;
  drain.set_member_id(actor);
  call([&](auto... a) { return coordinator->Drain(a...); }, drain, v1::DrainResponse());
  call([&](auto... a) { return coordinator->Heartbeat(a...); }, v1::HeartbeatRequest(), v1::HeartbeatResponse());
  call([&](auto... a) { return coordinator->ArriveAtBarrier(a...); }, v1::BarrierRequest(), v1::BarrierResponse());
  call([&](auto... a) { return coordinator->GetStatus(a...); }, v1::GetStatusRequest(), v1::StatusResponse());

  grpc::ClientContext collecting, subscribing;
  SetDeadline(&collecting);
  SetDeadline(&subscribing);
  const auto collect = OpenCollect(channel, &collecting);
  v1::CollectRequest hello;
  hello.mutable_hello()->set_protocol_major(kProtocolMajor);
  hello.mutable_hello()->set_actor_id(actor);
  WriteFrame(collect.get(), hello);
  v1::CollectResponse response;
  while (collect->Read(&response)) ADD_FAILURE() << "the learner answers a stranger";
  ends.push_back(FromGrpc(collect->Finish()));
  const auto subscribe = learner->SubscribePolicy(&subscribing, {});
  v1::PolicySnapshot snapshot;
  while (subscribe->Read(&snapshot)) ADD_FAILURE() << "a stranger gets the policy";
  ends.push_back(FromGrpc(subscribe->Finish()));
  return ends;
}

// The run is as if nobody had called: the same members, nobody drained, and it trains on.
void ExpectUntouched(SecuredCluster* run, const v1::StatusResponse& before) {
  const bool untouched = run->cluster().WaitForStatus([&](const v1::StatusResponse& now) {
    return now.progress().policy_version() > before.progress().policy_version() + 1;
  });
  EXPECT_TRUE(untouched);
  const auto after = run->cluster().Status();
  ASSERT_TRUE(after.ok());
  ASSERT_EQ(after->members_size(), before.members_size());
  for (int i = 0; i < after->members_size(); ++i) {
    EXPECT_EQ(after->members(i).member_id(), before.members(i).member_id());
    EXPECT_EQ(after->members(i).draining(), false);
  }
  EXPECT_EQ(after->progress().account().rejected(), before.progress().account().rejected());
}

TEST(FaultRow26, WithoutTheTokenNothingCanBeCalledOrSeen) {
  SecuredCluster run(false);
  ASSERT_TRUE(run.Trains());
  const auto before = run.cluster().Status();
  ASSERT_TRUE(before.ok());
  for (const Credentials& credentials : {Credentials{}, Credentials{.token = kWrongToken}}) {
    for (const absl::Status& end : CallEverything(&run, *before, credentials)) {
      EXPECT_TRUE(absl::IsUnauthenticated(end)) << end;
    }
  }
  for (const char* path :
       {"/", "/api/status", "/api/history", "/api/log", "/api/config", "/metrics", "/sd/prometheus", "/nowhere"}) {
    const HttpReply reply = HttpGet(run.cluster().http_port(), path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_THAT(reply.body, Not(HasSubstr("actor"))) << path;
  }
  EXPECT_EQ(HttpGet(run.cluster().http_port(), "/healthz").status, 200);
  ExpectUntouched(&run, *before);
  EXPECT_THAT(run.Output(), AllOf(HasSubstr("refused a call of"), Not(HasSubstr(run.credentials().token())),
                                  Not(HasSubstr(kWrongToken))));
}

TEST(FaultRow26, ProgramsWithoutTheTokenSayWhatIsMissing) {
  SecuredCluster run(false);
  ASSERT_TRUE(run.Trains());
  const ScratchFolder folder;
  const std::string wrong = folder.Write("token", kWrongToken);
  ASSERT_EQ(chmod(wrong.c_str(), 0600), 0);
  const std::string& address = run.cluster().address();
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"skein", "status", "--address", address},
           {"skein", "drain", "actor-1", "--address", address},
           {"skein", "worker", "--address", address, "--runners", "1"},
           {"skein-actor", "--coordinator", address},
           {"skein-learner", "--coordinator", address, "--run-dir", folder.path() + "/run"}}) {
    std::vector<std::string> arguments(command.begin() + 1, command.end());
    arguments.insert(arguments.end(), {"--token-file", wrong});
    const Ended ended = RunToEnd(command[0], arguments, absl::Seconds(30));
    EXPECT_EQ(ended.code, 64) << command[0] << " " << command[1] << ended.err;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("--token-file"), Not(HasSubstr(kWrongToken)))) << command[0];
  }
}

TEST(FaultRow26, RolesTrainWithTheirCertificatesAndStrangersDoNot) {
  SecuredCluster run(true);
  ASSERT_TRUE(run.Trains());
  const auto before = run.cluster().Status();
  ASSERT_TRUE(before.ok());

  const auto ca_text = ReadFile(run.credentials().path() + "/ca.crt");
  const auto ca_key = ReadFile(run.credentials().path() + "/ca.key");
  ASSERT_TRUE(ca_text.ok() && ca_key.ok());
  const CertificateAuthority issuer({*ca_key, *ca_text});
  const auto other = CertificateAuthority::Make(absl::Hours(1));
  ASSERT_TRUE(other.ok());
  const auto issue = [&](const CertificateAuthority& authority, CertificateAuthority::Request request) {
    request.common_name = "stranger";
    request.names = {kActorName, kLearnerName, kClientName};
    const auto made = authority.Issue(request);
    EXPECT_TRUE(made.ok()) << made.status();
    return Credentials{made->certificate_pem, made->key_pem, *ca_text, run.credentials().token()};
  };
  CertificateAuthority::Request expired;
  expired.valid_from = -absl::Hours(2);
  expired.valid_until = -absl::Hours(1);
  for (const Credentials& stranger :
       {Credentials{.token = run.credentials().token()}, issue(*other, {}), issue(issuer, expired)}) {
    for (const absl::Status& end : CallEverything(&run, *before, stranger)) {
      EXPECT_TRUE(absl::IsUnavailable(end)) << end;
    }
  }
  ExpectUntouched(&run, *before);
  EXPECT_THAT(run.Output(), Not(HasSubstr(run.credentials().token())));

  const Ended status = RunToEnd("skein", {"status", "--address", run.cluster().address()});
  EXPECT_EQ(status.code, 0) << status.err;  // With the client's certificate, from the environment.
}

// What the calls of a member end with if they come from somebody with these credentials, who knows its living lease.
std::vector<absl::Status> CallAs(SecuredCluster* run, const v1::MemberStatus& member, const Credentials& credentials) {
  const auto stub = v1::Coordinator::NewStub(OpenChannel(run->cluster().address(), credentials));
  grpc::ClientContext beating, leaving, arriving;
  for (grpc::ClientContext* context : {&beating, &leaving, &arriving}) SetDeadline(context);
  v1::HeartbeatRequest beat;
  beat.set_member_id(member.member_id());
  beat.set_generation(member.generation());
  beat.mutable_progress()->set_state(v1::RUN_STATE_FAILED);
  v1::HeartbeatResponse beaten;
  v1::LeaveRequest leave;
  leave.set_member_id(member.member_id());
  leave.set_generation(member.generation());
  v1::LeaveResponse left;
  v1::BarrierRequest arrive;
  arrive.set_member_id(member.member_id());
  arrive.set_member_generation(member.generation());
  arrive.set_name("start");
  arrive.set_barrier_generation(1);
  v1::BarrierResponse arrived;
  return {FromGrpc(stub->Heartbeat(&beating, beat, &beaten)), FromGrpc(stub->Leave(&leaving, leave, &left)),
          FromGrpc(stub->ArriveAtBarrier(&arriving, arrive, &arrived))};
}

TEST(FaultRow26, ALivingLeaseIsOfNoUseWithAnotherCertificate) {
  SecuredCluster run(true);
  ASSERT_TRUE(run.Trains());
  const auto before = run.cluster().Status();
  ASSERT_TRUE(before.ok());
  const auto ca_text = ReadFile(run.credentials().path() + "/ca.crt");
  const auto ca_key = ReadFile(run.credentials().path() + "/ca.key");
  ASSERT_TRUE(ca_text.ok() && ca_key.ok());
  // Of this run's CA, with all roles.
  const auto made = CertificateAuthority({*ca_key, *ca_text})
                        .Issue({.common_name = "stranger", .names = {kActorName, kLearnerName, kClientName}});
  ASSERT_TRUE(made.ok()) << made.status();
  const auto actors = LoadCredentials(run.credentials().Of("actor"));
  const auto learners = LoadCredentials(run.credentials().Of("learner"));
  ASSERT_TRUE(actors.ok() && learners.ok());
  for (const v1::MemberStatus& member : before->members()) {
    const Credentials& others = member.role() == "actor" ? *learners : *actors;
    const Credentials stranger{made->certificate_pem, made->key_pem, *ca_text, run.credentials().token()};
    for (const Credentials& credentials : {others, stranger}) {
      for (const absl::Status& end : CallAs(&run, member, credentials)) {
        EXPECT_TRUE(absl::IsPermissionDenied(end)) << member.member_id() << ": " << end;
      }
    }
  }
  ExpectUntouched(&run, *before);
  const auto after = run.cluster().Status();
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->state(), v1::RUN_STATE_TRAINING);
  for (int i = 0; i < after->members_size(); ++i) {
    EXPECT_EQ(after->members(i).generation(), before->members(i).generation());
  }
  EXPECT_THAT(run.cluster().coordinator().Output(), HasSubstr("joined with another certificate"));
}

TEST(FaultRow26, ACertificateDoesWhatItsRoleNeedsAndNothingElse) {
  SecuredCluster run(true);
  ASSERT_TRUE(run.Trains());
  const auto before = run.cluster().Status();
  ASSERT_TRUE(before.ok());
  const auto drain = [&](const std::string& role) {
    const auto credentials = LoadCredentials(run.credentials().Of(role));
    const auto stub = v1::Coordinator::NewStub(OpenChannel(run.cluster().address(), *credentials));
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::DrainRequest request;
    for (const v1::MemberStatus& member : before->members()) {
      if (member.role() == "actor") request.set_member_id(member.member_id());
    }
    v1::DrainResponse response;
    return FromGrpc(stub->Drain(&context, request, &response));
  };
  for (const char* role : {"actor", "learner"}) EXPECT_TRUE(absl::IsPermissionDenied(drain(role))) << role;
  const auto join = [&](const std::string& role, v1::Role as) {
    const auto credentials = LoadCredentials(run.credentials().Of(role));
    const auto stub = v1::Coordinator::NewStub(OpenChannel(run.cluster().address(), *credentials));
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::JoinRequest request;
    request.set_protocol_major(kProtocolMajor);
    request.set_role(as);
    request.set_rank(1);
    request.set_ranks(2);
    request.set_data_address("127.0.0.1:1");
    v1::JoinResponse response;
    return FromGrpc(stub->Join(&context, request, &response));
  };
  EXPECT_TRUE(absl::IsPermissionDenied(join("actor", v1::ROLE_LEARNER)));
  EXPECT_TRUE(absl::IsPermissionDenied(join("learner", v1::ROLE_ACTOR)));
  EXPECT_TRUE(absl::IsPermissionDenied(join("client", v1::ROLE_ACTOR)));
  // The learner's port is for actors.
  const auto credentials = LoadCredentials(run.credentials().Of("client"));
  const auto learner = v1::Learner::NewStub(OpenChannel(run.cluster().learner_address(), *credentials));
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto subscribe = learner->SubscribePolicy(&context, {});
  v1::PolicySnapshot snapshot;
  EXPECT_FALSE(subscribe->Read(&snapshot));
  EXPECT_EQ(subscribe->Finish().error_code(), grpc::PERMISSION_DENIED);
  ExpectUntouched(&run, *before);
}

TEST(FaultRow26, WhoHasNotJoinedIsSentAwayByTheLearner) {
  SecuredCluster run(false);
  ASSERT_TRUE(run.Trains());
  const auto before = run.cluster().Status();
  ASSERT_TRUE(before.ok());
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto collect = OpenCollect(OpenChannel(run.cluster().learner_address()), &context);
  v1::CollectRequest request;
  v1::Hello& hello = *request.mutable_hello();
  hello.set_protocol_major(kProtocolMajor);
  hello.set_run_id("run");
  hello.set_actor_id("actor-1000");
  hello.set_generation(1);
  v1::EnvSpecInfo& spec = *hello.mutable_env_spec();
  spec.set_env_id("CartPole-v1");
  spec.set_obs_size(4);
  spec.set_action_size(2);
  spec.set_discrete(true);
  spec.set_num_agents(1);
  spec.set_relocatable(true);
  // And it says that it was the run's actor before.
  for (const v1::MemberStatus& member : before->members()) {
    if (member.role() != "actor") continue;
    hello.set_previous_actor_id(member.member_id());
    hello.set_previous_generation(member.generation());
  }
  ASSERT_TRUE(WriteFrame(collect.get(), request));
  v1::CollectResponse response;
  ASSERT_TRUE(collect->Read(&response));
  EXPECT_TRUE(response.has_welcome());
  while (collect->Read(&response)) {
  }
  EXPECT_EQ(collect->Finish().error_code(), grpc::ABORTED);
  ExpectUntouched(&run, *before);
  const auto after = run.cluster().Status();
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->progress().account().lost(), 0u);
  EXPECT_THAT(run.Output(), AllOf(HasSubstr("actor-1000 (generation 1) is not a member of the run"),
                                  Not(HasSubstr("joining again"))));
}

TEST(FaultRow26, HttpsIsForThoseWithTheToken) {
  SecuredCluster run(true);
  ASSERT_TRUE(run.Trains());
  const std::string port = FirstMatch(run.cluster().coordinator().Output(), "http=https://[^/]+:(\\d+)/");
  ASSERT_FALSE(port.empty());
  const std::string curl =
      absl::StrCat("curl -s -o /dev/null -w '%{http_code}' --cacert ", run.credentials().path(), "/ca.crt ");
  const std::string page = absl::StrCat(" https://localhost:", port, "/api/status");
  const auto code = [&](const std::string& flags, const std::string& input) {
    std::string output;
    EXPECT_EQ(RunWithInput(curl + flags + page, input, &output), 0) << flags;
    return output;
  };
  EXPECT_EQ(code("", ""), "401");
  EXPECT_EQ(code("-H @-", "Authorization: Bearer " + run.credentials().token()), "200");
  EXPECT_EQ(code("-K -", "user = \"me:" + run.credentials().token() + "\""), "200");  // As browsers ask people for it.
  std::string output;
  EXPECT_NE(RunWithInput(curl + page + " --cacert /dev/null", "", &output), 0);
}

TEST(FaultRow26, AnOldLeaseIsOfNoUse) {
  SecuredCluster run(false);
  ASSERT_TRUE(run.Trains());
  const auto stub = v1::Coordinator::NewStub(OpenChannel(run.cluster().address()));
  v1::JoinRequest join;
  join.set_protocol_major(kProtocolMajor);
  join.set_role(v1::ROLE_ACTOR);
  join.set_host("127.0.0.1");
  v1::JoinResponse joined;
  grpc::ClientContext joining;
  SetDeadline(&joining);
  ASSERT_TRUE(stub->Join(&joining, join, &joined).ok());
  // It falls silent for the two seconds of its lease.
  ASSERT_TRUE(run.cluster().WaitForStatus([](const v1::StatusResponse& s) { return s.members_size() == 3; }));
  ASSERT_TRUE(run.cluster().WaitForStatus([](const v1::StatusResponse& s) { return s.members_size() == 2; }));
  const auto before = run.cluster().Status();
  ASSERT_TRUE(before.ok());
  v1::HeartbeatRequest replayed;
  replayed.set_member_id(joined.member_id());
  replayed.set_generation(joined.generation());
  v1::HeartbeatResponse answer;
  grpc::ClientContext beating;
  SetDeadline(&beating);
  const absl::Status refused = FromGrpc(stub->Heartbeat(&beating, replayed, &answer));
  EXPECT_TRUE(absl::IsNotFound(refused) || absl::IsFailedPrecondition(refused)) << refused;
  // A living member by an old generation: neither beats nor leaves.
  for (const v1::MemberStatus& member : before->members()) {
    replayed.set_member_id(member.member_id());
    replayed.set_generation(joined.generation() - 1'000'000);
    grpc::ClientContext context;
    SetDeadline(&context);
    EXPECT_EQ(stub->Heartbeat(&context, replayed, &answer).error_code(), grpc::FAILED_PRECONDITION);
    v1::LeaveRequest leave;
    leave.set_member_id(replayed.member_id());
    leave.set_generation(replayed.generation());
    v1::LeaveResponse left;
    grpc::ClientContext leaving;
    SetDeadline(&leaving);
    stub->Leave(&leaving, leave, &left);
  }
  ExpectUntouched(&run, *before);
}

TEST(FaultRow26, ATokenFileThatIsNoGoodIsFatal) {
  const ScratchFolder folder;
  const std::string open = folder.Write("open", kWrongToken);
  ASSERT_EQ(chmod(open.c_str(), 0644), 0);
  const std::string empty = folder.Write("empty", "");
  ASSERT_EQ(chmod(empty.c_str(), 0600), 0);
  for (const auto& [file, why] :
       {std::pair{open, "chmod 600"}, {empty, "is empty"}, {folder.path() + "/nowhere", ""}}) {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"skein-coordinator", "--listen", "127.0.0.1:0"},
             {"skein-learner", "--coordinator", "127.0.0.1:1", "--run-dir", folder.path()},
             {"skein-actor", "--coordinator", "127.0.0.1:1"},
             {"skein", "status"}}) {
      std::vector<std::string> arguments(command.begin() + 1, command.end());
      arguments.insert(arguments.end(), {"--token-file", file});
      const Ended ended = RunToEnd(command[0], arguments, absl::Seconds(10));
      EXPECT_EQ(ended.code, 64) << command[0] << ended.err;
      EXPECT_THAT(ended.err, AllOf(HasSubstr(file), HasSubstr(why), Not(HasSubstr(kWrongToken))));
    }
  }
}

TEST(FaultRow26, APublicAddressWithoutCredentialsIsRefused) {
  const ScratchFolder folder;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"skein-coordinator", "--listen", "0.0.0.0:0", "--http", "127.0.0.1:0"},
           {"skein-coordinator", "--listen", "127.0.0.1:0", "--http", "[::]:0"},
           {"skein-learner", "--coordinator", "127.0.0.1:1", "--run-dir", folder.path(), "--listen", ":0"},
           {"skein-learner", "--coordinator", "127.0.0.1:1", "--run-dir", folder.path(), "--metrics", "0.0.0.0:0"},
           {"skein-actor", "--coordinator", "127.0.0.1:1", "--metrics", "0.0.0.0:0"},
           {"skein", "worker", "--address", "127.0.0.1:1", "--metrics", "0.0.0.0:0"},
           {"skein", "head", "--config", "configs/cartpole_ppo.yaml", "--host", "0.0.0.0", "--runs-dir",
            folder.path()}}) {
    const Ended ended = RunToEnd(command[0], {command.begin() + 1, command.end()}, absl::Seconds(10));
    EXPECT_EQ(ended.code, 64) << command[0] << ended.err;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("skein certs init"), HasSubstr("--token-file"), HasSubstr("--insecure")));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  }
}

}  // namespace
}  // namespace skein
