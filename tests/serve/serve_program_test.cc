// SPDX-License-Identifier: Apache-2.0
// skein serve as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <cstring>

#include "absl/strings/numbers.h"
#include "base/net/grpc_transport.h"
#include "nlohmann/json.hpp"
#include "skein/v1/serve_service.grpc.pb.h"
#include "tests/export/reference_policy.h"
#include "tests/testing/http_get.h"
#include "tests/testing/loopback.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";

// `skein serve` of a reference policy, with these further flags.
class ServeProgram {
 public:
  explicit ServeProgram(const std::vector<std::string>& more = {}) : reference(MakeReference("tanh", folder.path())) {
    std::vector<std::string> arguments = {"serve",       "--checkpoint", reference.checkpoint, "--listen",
                                          "127.0.0.1:0", "--http",       "127.0.0.1:0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    program = std::make_unique<Running>("skein", arguments);
    (void)absl::SimpleAtoi(program->WaitForOutput("grpc=127.0.0.1:([0-9]+)"), &grpc_port);
    (void)absl::SimpleAtoi(program->WaitForOutput("http=https?://127.0.0.1:([0-9]+)"), &http_port);
  }

  // The action of the first observation.
  absl::StatusOr<std::vector<float>> Act(const Credentials& credentials) const {
    const auto stub = v1::PolicyServer::NewStub(OpenChannel(absl::StrCat("127.0.0.1:", grpc_port), credentials));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    const auto size = static_cast<size_t>(reference.actor->observation_size()) * sizeof(float);
    v1::ActRequest request;
    request.set_observations(reinterpret_cast<const char*>(reference.observations.data()), size);
    v1::ActResponse response;
    if (absl::Status status = FromGrpc(stub->Act(&context, request, &response)); !status.ok()) return status;
    std::vector<float> action(response.actions().size() / sizeof(float));
    std::memcpy(action.data(), response.actions().data(), response.actions().size());
    return action;
  }
  std::vector<float> Want() const {
    const auto size = static_cast<std::ptrdiff_t>(reference.actor->action_size());
    return {reference.actions.begin(), reference.actions.begin() + size};
  }

  const ScratchFolder folder;
  const ReferencePolicy reference;
  std::unique_ptr<Running> program;
  int grpc_port = 0, http_port = 0;
};

// The answer to a POST.
std::string Post(int port, const std::string& body, const std::string& headers = "",
                 const std::string& type = "application/json") {
  const int fd = ConnectTo(port);
  const std::string request =
      absl::StrCat("POST /v1/act HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", headers, "Content-Type: ", type,
                   "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string answer;
  char some[4096];
  for (ssize_t got = 0; (got = recv(fd, some, sizeof(some), 0)) > 0;) answer.append(some, static_cast<size_t>(got));
  close(fd);
  return answer;
}

TEST(ServeProgram, ActsOverGrpcAndHttpUntilItIsStopped) {
  ServeProgram served;
  const auto action = served.Act({});
  ASSERT_TRUE(action.ok()) << action.status();
  EXPECT_EQ(*action, served.Want());
  const auto size = static_cast<std::ptrdiff_t>(served.reference.actor->observation_size());
  const nlohmann::json request = {{"observation", std::vector<float>(served.reference.observations.begin(),
                                                                     served.reference.observations.begin() + size)}};
  const std::string answer = Post(served.http_port, request.dump());
  ASSERT_THAT(answer, HasSubstr("HTTP/1.1 200"));
  const auto json = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_FLOAT_EQ(json["action"][0].get<float>(), served.Want()[0]);
  EXPECT_THAT(Post(served.http_port, "{}"), HasSubstr("HTTP/1.1 400"));
  EXPECT_EQ(HttpGet(served.http_port, "/healthz").status, 200);
  EXPECT_THAT(HttpGet(served.http_port, "/metrics").body, HasSubstr("skein_serve_"));
  EXPECT_THAT(HttpGet(served.http_port, "/v1/policy").body, HasSubstr("\"env_id\""));
  served.program->Signal(SIGTERM);
  EXPECT_EQ(served.program->WaitForEnd(), 0);
}

// `curl -d` says that it sends a form.
TEST(ServeProgram, TakesTheSameJsonWhateverItsTypeIs) {
  constexpr char kForm[] = "application/x-www-form-urlencoded";
  ServeProgram served;
  const std::string empty = R"({"observations": []})";
  const auto of_size = [&](size_t size) { return empty + std::string(size - empty.size(), ' '); };
  for (const size_t size : {100, 9000, 60000}) {
    EXPECT_THAT(Post(served.http_port, of_size(size), "", kForm), HasSubstr("HTTP/1.1 400")) << size;
    EXPECT_EQ(Post(served.http_port, of_size(size), "", kForm), Post(served.http_port, of_size(size))) << size;
  }
  EXPECT_THAT(Post(served.http_port, empty, "", "multipart/form-data; boundary=x"),
              HasSubstr("{\"error\":\"want JSON"));
}

TEST(ServeProgram, EndsOnInterrupt) {
  ServeProgram served;
  served.program->Signal(SIGINT);
  EXPECT_EQ(served.program->WaitForEnd(), 0);
}

TEST(ServeProgram, WantsTheToken) {
  const ScratchFolder folder;
  folder.Write("token", std::string(kToken) + "\n");
  std::filesystem::permissions(folder.path() + "/token", std::filesystem::perms::owner_read);
  ServeProgram served({"--token-file", folder.path() + "/token"});
  Credentials token;
  token.token = kToken;
  EXPECT_TRUE(served.Act(token).ok());
  EXPECT_EQ(served.Act({}).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Post(served.http_port, "{}"), HasSubstr("HTTP/1.1 401"));
  EXPECT_THAT(Post(served.http_port, "{}", absl::StrCat("Authorization: Bearer ", kToken, "\r\n")),
              HasSubstr("HTTP/1.1 400"));  // It is let in, and has said nothing.
  EXPECT_EQ(HttpGet(served.http_port, "/v1/policy").status, 401);
  EXPECT_EQ(HttpGet(served.http_port, "/healthz").status, 200);
}

TEST(ServeProgram, SpeaksTlsWithClientsOfItsCa) {
  const ScratchFolder folder;
  const std::string files = folder.path() + "/credentials";
  ASSERT_EQ(RunToEnd("skein", {"certs", "init", files}).code, 0);
  const auto flags = [&files](const std::string& role) {
    return CredentialFiles{.tls_cert = absl::StrCat(files, "/", role, ".crt"),
                           .tls_key = absl::StrCat(files, "/", role, ".key"),
                           .tls_ca = files + "/ca.crt"};
  };
  const CredentialFiles node = flags("node");
  ServeProgram served({"--tls-cert", node.tls_cert, "--tls-key", node.tls_key, "--tls-ca", node.tls_ca});
  const auto action = served.Act(LoadCredentials(flags("client")).value());
  ASSERT_TRUE(action.ok()) << action.status();
  EXPECT_EQ(*action, served.Want());
  EXPECT_FALSE(served.Act({}).ok());
}

TEST(ServeProgram, SaysWhatIsWrongInOneLine) {
  const ScratchFolder folder;
  const Ended missing = RunToEnd("skein", {"serve", "--checkpoint", folder.path()});
  EXPECT_EQ(missing.code, 65);
  const ReferencePolicy reference = MakeReference("tanh", folder.path());
  const Ended open = RunToEnd("skein", {"serve", "--checkpoint", reference.checkpoint, "--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.code, 64);
  EXPECT_THAT(open.err, HasSubstr("nothing asks who calls"));
  EXPECT_EQ(RunToEnd("skein", {"serve"}).code, 64);
}

}  // namespace
}  // namespace skein
