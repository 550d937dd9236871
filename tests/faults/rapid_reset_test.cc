// SPDX-License-Identifier: Apache-2.0
// Floods of HTTP/2 frames from ten connections of another process (http2_attacker.cc) at a coordinator and at a
// learner. SKEIN_FLOOD_SECONDS: how long each takes, 2 unless it is set.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/net/host_port.h"
#include "gtest/gtest.h"
#include "tests/faults/secured_cluster.h"
#include "tests/faults/stranger.h"

namespace skein {
namespace {

constexpr double kHeartbeatSeconds = 1;  // H.
constexpr size_t kMostBytes = size_t{64} << 20;

std::string FloodSeconds() {
  const char* seconds = std::getenv("SKEIN_FLOOD_SECONDS");
  return seconds == nullptr ? "2" : seconds;
}

struct Flood {
  std::string name;
  std::string kind;
  std::string token;  // "right": the run's.
  bool deaf = false;
  bool tls = false;  // With the certificate of an actor of the run.
};

// An actor at work, with the heartbeats and leases of the defaults and a token, by TLS if the flood is.
class FaultRow24Flood : public testing::TestWithParam<Flood> {
 protected:
  FaultRow24Flood() {
    cluster_.StartCoordinator({}, credentials_.Variables("coordinator"));
    cluster_.StartLearner(credentials_.Variables("learner"));
    actor_ = cluster_.StartActor("", credentials_.Variables("actor"));
    EXPECT_TRUE(cluster_.WaitForStatus([](const v1::StatusResponse& status) {
      return status.members_size() == 2 && status.progress().account().trained() > 0;
    }));
  }

  // Floods a port; while it lasts and 1 s longer the process takes little more memory and nobody's heartbeat is late.
  void Survive(Running* process, const std::string& address, const std::string& method) {
    const size_t memory = ResidentBytes(process->pid());
    std::vector<std::string> arguments = {
        absl::StrCat(ParseHostPort(address)->port), "10", FloodSeconds(), GetParam().kind, "--method", method};
    if (GetParam().token == "right") arguments.insert(arguments.end(), {"--token", credentials_.token()});
    if (GetParam().token == "wrong") arguments.insert(arguments.end(), {"--token", "a token of another run"});
    if (GetParam().deaf) arguments.push_back("--deaf");
    if (GetParam().tls) {
      const CredentialFiles files = credentials_.Of("actor");
      arguments.insert(arguments.end(), {"--tls-cert", files.tls_cert, "--tls-key", files.tls_key});
    }
    Running attacker(HTTP2_ATTACKER, arguments);
    size_t most = 0;
    double oldest = 0;
    absl::Time end = absl::InfiniteFuture();
    for (; absl::Now() < end; absl::SleepFor(absl::Milliseconds(50))) {
      if (end == absl::InfiniteFuture() && attacker.ended()) end = absl::Now() + absl::Seconds(1);
      most = std::max(most, ResidentBytes(process->pid()));
      const auto status = cluster_.Status();
      ASSERT_TRUE(status.ok()) << status.status();
      EXPECT_EQ(status->members_size(), 2);
      for (const v1::MemberStatus& member : status->members()) {
        oldest = std::max(oldest, member.seconds_since_heartbeat());
      }
    }
    const std::string sent = FirstMatch(attacker.Output(), "sent ([0-9]+) frames");
    printf("%s at %s: %s frames, %.1f MiB more at most, oldest heartbeat %.2f s\n", GetParam().name.c_str(),
           method.c_str(), sent.c_str(), (static_cast<double>(most) - static_cast<double>(memory)) / (1 << 20), oldest);
    EXPECT_GT(std::atoll(sent.c_str()), 1000);
    EXPECT_LT(most, memory + kMostBytes);
    EXPECT_LT(oldest, 2 * kHeartbeatSeconds);  // Its period, and H late.
    // It goes on.
    uint64_t trained = 0;
    EXPECT_TRUE(cluster_.WaitForStatus([&](const v1::StatusResponse& status) {
      if (trained == 0) trained = status.progress().account().trained();
      return status.progress().account().trained() > trained + 2048;
    }));
  }

  const CredentialFolder credentials_{GetParam().tls};
  Cluster cluster_{{"total_steps=1000000000", "coordinator.heartbeat_seconds=1", "coordinator.lease_seconds=5"}};
  std::unique_ptr<Running> actor_;
};

TEST_P(FaultRow24Flood, CostsACoordinatorAndALearnerLittle) {
  Survive(&cluster_.coordinator(), CoordinatorAddress(&cluster_), "/skein.v1.Coordinator/GetStatus");
  if (HasFatalFailure()) return;
  Survive(&cluster_.learner(), LearnerAddress(&cluster_), "/skein.v1.Learner/Collect");
}

INSTANTIATE_TEST_SUITE_P(
    , FaultRow24Flood,
    testing::Values(Flood{"ResetWithoutAToken", "reset", ""}, Flood{"ResetWithAWrongToken", "reset", "wrong"},
                    Flood{"ResetWithTheRightToken", "reset", "right"}, Flood{"Ping", "ping", ""},
                    Flood{"Settings", "settings", ""}, Flood{"DeafCalls", "call", "right", true},
                    Flood{"DeafPing", "ping", "", true}, Flood{"DeafSettings", "settings", "", true},
                    Flood{"TlsResetWithoutAToken", "reset", "", false, true},
                    Flood{"TlsResetWithAWrongToken", "reset", "wrong", false, true},
                    Flood{"TlsResetWithTheRightToken", "reset", "right", false, true},
                    Flood{"TlsPing", "ping", "", false, true}, Flood{"TlsSettings", "settings", "", false, true},
                    Flood{"TlsDeafCalls", "call", "right", true, true}, Flood{"TlsDeafPing", "ping", "", true, true}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace skein
