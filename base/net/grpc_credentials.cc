// SPDX-License-Identifier: Apache-2.0
#include "base/net/grpc_credentials.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/net/call_authorization.h"
#include "base/net/call_quota.h"
#include "base/process/clock.h"
#include "base/telemetry/rare_log.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"
#include "grpc/slice.h"
#include "grpc/support/log.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/client_interceptor.h"
#include "openssl/evp.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr char kAuthorization[] = "authorization";
constexpr double kCallsAtOnce = 128;  // A client has 64 open calls at most (kMaxCallsPerConnection).
constexpr absl::string_view kNotTaken = "NOT handling external connection";

thread_local bool took_no_connection = false;

absl::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

std::vector<absl::string_view> NamesOfCertificate(const grpc_auth_context* context) {
  std::vector<absl::string_view> names;
  auto properties = grpc_auth_context_find_properties_by_name(context, GRPC_X509_SAN_PROPERTY_NAME);
  while (const grpc_auth_property* property = grpc_auth_property_iterator_next(&properties)) {
    names.emplace_back(property->value, property->value_length);
  }
  return names;
}

// What a server's credentials decide by. gRPC deletes it with the last connection.
struct Decider {
  Decider(Credentials all, double calls)
      : credentials(std::move(all)),
        calls_per_second(calls),
        quota({.per_second = calls, .burst = std::max(kCallsAtOnce, calls / 100), .clients = 1 << 16}) {}
  const Credentials credentials;
  const double calls_per_second;
  CallQuota quota;
  RareLog log;
};

// gRPC makes one grpc_auth_context for each connection.
absl::Status TakeQuota(Decider* decider, const grpc_auth_context* connection) {
  const std::string name(reinterpret_cast<const char*>(&connection), sizeof(connection));
  if (decider->quota.Take(name, MonotonicNow()).ok()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("too many calls over one connection: at most ", decider->calls_per_second, " a second"));
}

void Decide(void* state, grpc_auth_context* context, const grpc_metadata* metadata, size_t count,
            grpc_process_auth_metadata_done_cb done, void* user_data) {
  auto* decider = static_cast<Decider*>(state);
  IncomingCall call;
  for (size_t i = 0; i < count; ++i) {
    if (View(metadata[i].key) == ":path") call.method = View(metadata[i].value);
    if (View(metadata[i].key) == kAuthorization) call.authorization.push_back(View(metadata[i].value));
  }
  call.certificate_names = NamesOfCertificate(context);
  absl::Status status = AuthorizeCall(call, decider->credentials);
  if (status.ok()) status = TakeQuota(decider, context);
  if (!status.ok()) {
    decider->log.Warn(absl::StrCat("refused a call of ", call.method.substr(0, 100), ": ", status.message()));
  }
  // The token stays here: no handler sees it.
  std::vector<grpc_metadata> consumed;
  for (size_t i = 0; i < count; ++i) {
    if (View(metadata[i].key) == kAuthorization) consumed.push_back(metadata[i]);
  }
  done(user_data, consumed.data(), consumed.size(), nullptr, 0, static_cast<grpc_status_code>(status.code()),
       status.ok() ? nullptr : std::string(status.message()).c_str());
}

// gRPC's C++ layer lets only TLS credentials identify the caller; its core can do so in plain text too.
class DecidingCredentials final : public grpc::ServerCredentials {
 public:
  DecidingCredentials(const Credentials& credentials, double calls_per_second) : core_(Make(credentials)) {
    if (core_ == nullptr) return;
    grpc_auth_metadata_processor processor = {};
    processor.process = Decide;
    processor.destroy = [](void* state) { delete static_cast<Decider*>(state); };
    processor.state = new Decider(credentials, calls_per_second);
    grpc_server_credentials_set_auth_metadata_processor(core_, processor);
  }
  ~DecidingCredentials() override {
    if (core_ != nullptr) grpc_server_credentials_release(core_);
  }

  bool valid() const { return core_ != nullptr; }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  static grpc_server_credentials* Make(const Credentials& credentials) {
    if (!credentials.has_tls()) return grpc_insecure_server_credentials_create();
    grpc_ssl_pem_key_cert_pair own = {credentials.key_pem.c_str(), credentials.certificate_pem.c_str()};
    return grpc_ssl_server_credentials_create_ex(credentials.ca_pem.c_str(), &own, 1,
                                                 GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, nullptr);
  }

  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), core_);
  }

  grpc_server_credentials* const core_;
};

// gRPC sends call credentials by TLS only.
class TokenSender final : public grpc::experimental::Interceptor {
 public:
  explicit TokenSender(std::string header) : header_(std::move(header)) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kAuthorization, header_);
    }
    methods->Proceed();
  }

 private:
  const std::string header_;
};

class TokenSenderFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenSenderFactory(const std::string& token) : header_(absl::StrCat("Bearer ", token)) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo*) override {
    return new TokenSender(header_);
  }

 private:
  const std::string header_;
};

// One line a place in gRPC's sources: there are not many.
class GrpcLog {
 public:
  // Not `shown`: nothing is logged.
  explicit GrpcLog(bool shown) : shown_(shown) {}

  void Write(const gpr_log_func_args& line) ABSL_LOCKS_EXCLUDED(mu_) {
    if (absl::StartsWith(line.message, kNotTaken)) {
      took_no_connection = true;
      return;
    }
    if (!shown_) return;
    const absl::string_view path(line.file);
    const std::string place = absl::StrCat(path.substr(path.rfind('/') + 1), ":", line.line);
    RareLog* rare = nullptr;
    {
      absl::MutexLock lock(&mu_);
      rare = &places_[place];
    }
    const std::string message = absl::StrCat("gRPC: ", line.message, " (", place, ")");
    if (line.severity == GPR_LOG_SEVERITY_ERROR) {
      rare->Warn(message);
    } else {  // Only if GRPC_VERBOSITY asks for them.
      spdlog::info("{}", message);
    }
  }

 private:
  const bool shown_;
  absl::Mutex mu_;
  std::map<std::string, RareLog> places_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const Credentials& credentials,
                                                                               double calls_per_second) {
  auto deciding = std::make_shared<DecidingCredentials>(credentials, calls_per_second);
  if (!deciding->valid()) return absl::InvalidArgumentError("the TLS certificate, key and CA are of no use to gRPC");
  return deciding;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Credentials& credentials,
                                           grpc::ChannelArguments arguments) {
  std::shared_ptr<grpc::ChannelCredentials> channel = grpc::InsecureChannelCredentials();
  if (credentials.has_tls()) {
    arguments.SetSslTargetNameOverride(kServerName);
    channel = grpc::SslCredentials({credentials.ca_pem, credentials.key_pem, credentials.certificate_pem});
  }
  if (credentials.token.empty()) return grpc::CreateCustomChannel(address, channel, arguments);
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<TokenSenderFactory>(credentials.token));
  return grpc::experimental::CreateCustomChannelWithInterceptors(address, channel, arguments, std::move(interceptors));
}

absl::Status CheckCertificateName(const grpc::ServerContextBase& context, const std::string& name) {
  const auto connection = context.auth_context();
  if (connection == nullptr || connection->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty()) {
    return absl::OkStatus();
  }
  for (const grpc::string_ref& one : connection->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
    if (one == name) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat("the caller's certificate is not for ", name));
}

std::string CertificateDigest(const grpc::ServerContextBase& context) {
  const auto connection = context.auth_context();
  if (connection == nullptr) return "";
  const auto certificates = connection->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (certificates.empty()) return "";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(certificates.front().data(), certificates.front().size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

void RouteGrpcLog() {
  static GrpcLog* log = nullptr;
  static const bool routed = [] {
    // TookNoConnection() needs gRPC's errors also where GRPC_VERBOSITY wants none: they are not shown then.
    gpr_log_verbosity_init();
    const bool shown = gpr_should_log(GPR_LOG_SEVERITY_ERROR) != 0;
    if (!shown) gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
    log = new GrpcLog(shown);
    gpr_set_log_function([](gpr_log_func_args* line) { log->Write(*line); });
    return true;
  }();
  (void)routed;
}

bool TookNoConnection() { return std::exchange(took_no_connection, false); }

}  // namespace skein
