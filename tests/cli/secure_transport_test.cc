// SPDX-License-Identifier: Apache-2.0
// Servers and channels with the certificates that `skein certs init` makes.
#include <memory>
#include <set>
#include <string>

#include "absl/time/clock.h"
#include "base/net/call_authorization.h"
#include "base/net/grpc_credentials.h"
#include "base/net/grpc_transport.h"
#include "base/net/tls_probe.h"
#include "cli/certificate_authority.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "keda/external_scaler.grpc.pb.h"
#include "skein/v1/coordinator_service.grpc.pb.h"
#include "tests/base/health_check.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";

// Answers joins of actors and counts them.
class Echo : public v1::Coordinator::Service {
 public:
  int joins = 0;
  std::set<std::string> certificates;
  bool saw_token = false;

 private:
  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest*, v1::JoinResponse*) override {
    saw_token = context->client_metadata().count("authorization") > 0;
    const absl::Status role = CheckCertificateName(*context, kActorName);
    joins += role.ok();
    certificates.insert(CertificateDigest(*context));
    return ToGrpc(role);
  }
};

// Answers every caller that is let in.
class Scaler : public externalscaler::ExternalScaler::Service {
  grpc::Status GetMetrics(grpc::ServerContext*, const externalscaler::GetMetricsRequest*,
                          externalscaler::GetMetricsResponse*) override {
    return grpc::Status::OK;
  }
};

class SecureTransport : public testing::Test {
 protected:
  void Serve(const Credentials& credentials) {
    auto server = StartGrpcServer("127.0.0.1:0", {&service_, &scaler_}, &port_, {}, credentials);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  absl::Status Join(const Credentials& credentials) const {
    const auto stub = v1::Coordinator::NewStub(OpenChannel(JoinHostPort("127.0.0.1", port_), credentials));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    v1::JoinResponse response;
    return FromGrpc(stub->Join(&context, {}, &response));
  }
  Credentials Issue(const std::vector<std::string>& names, const std::string& token = "") const {
    return Issue(authority_, {.common_name = "test", .names = names, .serves = true}, token);
  }
  static Credentials Issue(const CertificateAuthority& authority, const CertificateAuthority::Request& request,
                           const std::string& token = "") {
    const auto issued = authority.Issue(request);
    EXPECT_TRUE(issued.ok()) << issued.status();
    return {issued->certificate_pem, issued->key_pem, authority.own().certificate_pem, token};
  }

  const CertificateAuthority authority_ = *CertificateAuthority::Make(absl::Hours(24));
  Echo service_;
  Scaler scaler_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(SecureTransport, BothSidesShowTheirCertificates) {
  Serve(Issue({kServerName}));
  EXPECT_TRUE(Join(Issue({kActorName})).ok());
  EXPECT_EQ(service_.joins, 1);
}

// As KEDA's external scaler calls: gRPC's own TLS with caCert, tlsClientCert and tlsClientKey, no token, and the host
// of scalerAddress must be a name of the server's certificate.
TEST_F(SecureTransport, KedaShowsAClientsCertificateAndExpectsTheHostsName) {
  const std::string host = "cheetah-skein-coordinator.rl";
  Serve(Issue({kServerName, host}, kToken));
  const auto ask = [this](const std::string& expected_host, const Credentials& keda) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = keda.ca_pem;
    tls.pem_cert_chain = keda.certificate_pem;
    tls.pem_private_key = keda.key_pem;
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(expected_host);
    const auto stub = externalscaler::ExternalScaler::NewStub(
        grpc::CreateCustomChannel(JoinHostPort("127.0.0.1", port_), grpc::SslCredentials(tls), arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    externalscaler::GetMetricsResponse response;
    return FromGrpc(stub->GetMetrics(&context, {}, &response));
  };
  EXPECT_TRUE(ask(host, Issue({kClientName})).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ask(host, Issue({kActorName}))));
  EXPECT_TRUE(absl::IsUnavailable(ask("other-skein-coordinator.rl", Issue({kClientName}))));
  Credentials nothing = Issue({kClientName});
  nothing.certificate_pem.clear();
  nothing.key_pem.clear();
  EXPECT_FALSE(ask(host, nothing).ok());
}

TEST_F(SecureTransport, NobodyIsLetInWithoutACertificateOfThisCa) {
  Serve(Issue({kServerName}));
  const CertificateAuthority other = *CertificateAuthority::Make(absl::Hours(24));
  Credentials foreign = Issue(other, {.common_name = "test", .names = {kActorName}});
  foreign.ca_pem = authority_.own().certificate_pem;  // It trusts the server.
  EXPECT_TRUE(absl::IsUnavailable(Join({})));
  EXPECT_TRUE(absl::IsUnavailable(Join(foreign)));
  EXPECT_EQ(service_.joins, 0);
}

TEST_F(SecureTransport, FindsWhatIsWrongWithTls) {
  const auto problem = [this](const Credentials& credentials) {
    return FindTlsProblem(JoinHostPort("127.0.0.1", port_), credentials, absl::Seconds(5));
  };
  Serve(Issue({kServerName}));
  EXPECT_EQ(problem(Issue({kActorName})), "");
  EXPECT_THAT(problem({}), HasSubstr("it speaks only TLS: give --tls-cert, --tls-key and --tls-ca"));
  const CertificateAuthority other = *CertificateAuthority::Make(absl::Hours(24));
  Credentials foreign = Issue(other, {.common_name = "test", .names = {kActorName}});
  EXPECT_THAT(problem(foreign), AllOf(HasSubstr("its certificate is not accepted ("), HasSubstr("--tls-ca must be")));
  foreign.ca_pem = authority_.own().certificate_pem;  // It trusts the server.
  EXPECT_THAT(problem(foreign), HasSubstr("it refuses the certificate of --tls-cert"));
  server_->Shutdown();
  EXPECT_EQ(problem({}), "");  // Nobody is there.
  Serve({});
  EXPECT_EQ(problem({}), "");
  EXPECT_THAT(problem(Issue({kActorName})), HasSubstr("it does not speak TLS: leave out --tls-cert"));
}

TEST_F(SecureTransport, AnExpiredCertificateIsNone) {
  Serve(Issue({kServerName}));
  const CertificateAuthority::Request past = {
      .common_name = "test", .names = {kActorName}, .valid_from = -absl::Hours(2), .valid_until = -absl::Hours(1)};
  EXPECT_TRUE(absl::IsUnavailable(Join(Issue(authority_, past))));
  EXPECT_EQ(service_.joins, 0);
}

TEST_F(SecureTransport, AServerMustHaveAServersCertificate) {
  Serve(Issue({kActorName, "127.0.0.1"}));
  EXPECT_TRUE(absl::IsUnavailable(Join(Issue({kActorName}))));
  server_.reset();
  const CertificateAuthority other = *CertificateAuthority::Make(absl::Hours(24));
  Serve(Issue(other, {.common_name = "test", .names = {kServerName}, .serves = true}));
  EXPECT_TRUE(absl::IsUnavailable(Join(Issue({kActorName}))));
}

TEST_F(SecureTransport, ARoleIsNotAMatterOfChoice) {
  Serve(Issue({kServerName}));
  EXPECT_TRUE(absl::IsPermissionDenied(Join(Issue({kClientName}))));   // May not call it at all.
  EXPECT_TRUE(absl::IsPermissionDenied(Join(Issue({kLearnerName}))));  // May, but not as an actor.
  EXPECT_EQ(service_.joins, 0);
}

TEST_F(SecureTransport, ACertificateIsKnownAgain) {
  Serve(Issue({kServerName}));
  const Credentials one = Issue({kActorName}), other = Issue({kActorName});
  for (const Credentials& actor : {one, other, one}) EXPECT_TRUE(Join(actor).ok());
  EXPECT_EQ(service_.certificates.size(), 2u);
  EXPECT_EQ(service_.certificates.begin()->size(), 64u);  // Hex digits.
}

TEST_F(SecureTransport, ATokenIsCheckedInPlainText) {
  Serve({.token = kToken});
  EXPECT_TRUE(absl::IsUnauthenticated(Join({})));
  EXPECT_TRUE(absl::IsUnauthenticated(Join({.token = "0123456789abcdeF"})));
  EXPECT_EQ(service_.joins, 0);
  EXPECT_TRUE(Join({.token = kToken}).ok());
  EXPECT_EQ(service_.joins, 1);
  EXPECT_FALSE(service_.saw_token);  // Handlers cannot log what they do not see.
  EXPECT_EQ(*service_.certificates.begin(), "");
}

TEST_F(SecureTransport, ATokenIsCheckedBesidesTheCertificate) {
  Serve(Issue({kServerName}, kToken));
  EXPECT_TRUE(absl::IsUnauthenticated(Join(Issue({kActorName}))));
  EXPECT_TRUE(absl::IsUnauthenticated(Join(Issue({kActorName}, "0123456789abcdeF"))));
  EXPECT_TRUE(Join(Issue({kActorName}, kToken)).ok());
  EXPECT_EQ(service_.joins, 1);
}

TEST_F(SecureTransport, HealthChecksNeedNoToken) {
  Serve({.token = kToken});
  EXPECT_EQ(CheckHealth(port_, ""), "SERVING");
}

TEST_F(SecureTransport, AServerThatEndsClosesWhatItDoesNotTake) {
  Serve({});
  ASSERT_TRUE(Join({}).ok());
  server_->Shutdown();
  EXPECT_TRUE(absl::IsUnavailable(Join({})));  // At once, not at the deadline.
  const int port = port_;
  server_.reset();
  auto again = StartGrpcServer(JoinHostPort("127.0.0.1", port), {&service_}, &port_, {}, {});
  EXPECT_TRUE(again.ok()) << again.status();
}

}  // namespace
}  // namespace skein
