// SPDX-License-Identifier: Apache-2.0
#include "base/net/call_authorization.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kToken[] = "0123456789abcdef";
constexpr char kJoin[] = "/skein.v1.Coordinator/Join";

absl::Status WithToken(std::vector<absl::string_view> headers, absl::string_view method = kJoin) {
  return AuthorizeCall({method, std::move(headers), {}}, {.token = kToken});
}

absl::Status WithCertificate(absl::string_view name, absl::string_view method) {
  return AuthorizeCall({method, {}, {"localhost", name}}, {.ca_pem = "a CA"});
}

TEST(AuthorizeCall, WithoutCredentialsEverybodyMayCall) { EXPECT_TRUE(AuthorizeCall({kJoin, {}, {}}, {}).ok()); }

TEST(AuthorizeCall, TheTokenIsAskedFor) {
  const std::string right = absl::StrCat("Bearer ", kToken);
  EXPECT_TRUE(WithToken({right}).ok());
  for (const char* scheme : {"bearer ", "BEARER ", "bEaReR "}) {
    EXPECT_TRUE(WithToken({absl::StrCat(scheme, kToken)}).ok()) << scheme;
  }
  for (const std::vector<absl::string_view>& wrong :
       std::vector<std::vector<absl::string_view>>{{},
                                                   {""},
                                                   {kToken},
                                                   {"Bearer "},
                                                   {"Bearer0123456789abcdef"},
                                                   {"bearer"},
                                                   {"Bearer 0123456789abcdeF"},
                                                   {"Bearer 0123456789abcde"},
                                                   {"Bearer 0123456789abcdef0"},
                                                   {"Basic OjAxMjM0NTY3ODlhYmNkZWY="},
                                                   {right, right}}) {
    const absl::Status status = WithToken(wrong);
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("0123456789")));
  }
}

TEST(AuthorizeCall, ItIsAskedForWhateverTheMethod) {
  for (const char* method : {"/skein.v1.Learner/Collect", "/externalscaler.Other/IsActive", "/no.such/Thing", ""}) {
    EXPECT_TRUE(absl::IsUnauthenticated(WithToken({}, method))) << method;
  }
}

TEST(AuthorizeCall, AnAutoscalerNeedsNoTokenButACertificate) {
  EXPECT_TRUE(WithToken({}, "/externalscaler.ExternalScaler/GetMetrics").ok());
  const Credentials both = {.ca_pem = "a CA", .token = kToken};
  EXPECT_TRUE(AuthorizeCall({"/externalscaler.ExternalScaler/GetMetrics", {}, {kClientName}}, both).ok());
  EXPECT_TRUE(
      absl::IsPermissionDenied(AuthorizeCall({"/externalscaler.ExternalScaler/GetMetrics", {}, {kActorName}}, both)));
}

TEST(AuthorizeCall, HealthChecksAreOpen) {
  EXPECT_TRUE(WithToken({}, "/grpc.health.v1.Health/Check").ok());
  EXPECT_TRUE(WithToken({}, "/grpc.health.v1.Health/Watch").ok());
  EXPECT_TRUE(WithCertificate("other", "/grpc.health.v1.Health/Check").ok());
  EXPECT_FALSE(WithToken({}, "/grpc.health.v1.HealthX/Check").ok());
}

TEST(AuthorizeCall, ACertificateIsForWhatItsRoleNeeds) {
  const char* const drain = "/skein.v1.Coordinator/Drain";
  const char* const barrier = "/skein.v1.Coordinator/ArriveAtBarrier";
  const char* const status = "/skein.v1.Coordinator/GetStatus";
  const char* const collect = "/skein.v1.Learner/Collect";
  const char* const scaler = "/externalscaler.ExternalScaler/GetMetrics";
  const char* const envs = "/skein.env.v1.Environment/Serve";
  struct Case {
    const char* name;
    std::vector<const char*> may, may_not;
  };
  for (const Case& role : std::vector<Case>{{kActorName, {kJoin, status, collect, envs}, {drain, barrier, scaler}},
                                            {kLearnerName, {kJoin, status, barrier}, {drain, collect, scaler, envs}},
                                            {kClientName, {drain, status, scaler, envs}, {kJoin, barrier, collect}},
                                            {kServerName, {}, {kJoin, drain, barrier, status, collect, scaler, envs}},
                                            {"other", {}, {kJoin, drain, barrier, status, collect, scaler}}}) {
    for (const char* method : role.may) EXPECT_TRUE(WithCertificate(role.name, method).ok()) << role.name << method;
    for (const char* method : role.may_not) {
      EXPECT_TRUE(absl::IsPermissionDenied(WithCertificate(role.name, method))) << role.name << method;
    }
  }
}

TEST(AuthorizeCall, ATokenDoesNotReplaceARole) {
  const std::string header = absl::StrCat("Bearer ", kToken);
  const Credentials both = {.ca_pem = "a CA", .token = kToken};
  EXPECT_TRUE(AuthorizeCall({kJoin, {header}, {kActorName}}, both).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(AuthorizeCall({kJoin, {header}, {kClientName}}, both)));
  EXPECT_TRUE(absl::IsUnauthenticated(AuthorizeCall({kJoin, {}, {kActorName}}, both)));
}

TEST(HasToken, AsBearerOrAsAPassword) {
  const Credentials credentials = {.token = kToken};
  EXPECT_TRUE(HasToken(absl::StrCat("Bearer ", kToken), credentials));
  EXPECT_TRUE(HasToken(absl::StrCat("bearer ", kToken), credentials));
  EXPECT_TRUE(HasToken("basic " + absl::Base64Escape(absl::StrCat(":", kToken)), credentials));
  for (const char* name : {"", "anybody"}) {
    EXPECT_TRUE(HasToken("Basic " + absl::Base64Escape(absl::StrCat(name, ":", kToken)), credentials)) << name;
  }
  for (const std::string& wrong :
       {std::string(), std::string("Bearer "), std::string("Basic !"), "Basic " + absl::Base64Escape(kToken),
        "Basic " + absl::Base64Escape(absl::StrCat(kToken, ":")), "Basic " + absl::Base64Escape(":other")}) {
    EXPECT_FALSE(HasToken(wrong, credentials)) << wrong;
  }
}

}  // namespace
}  // namespace skein
