// SPDX-License-Identifier: Apache-2.0
// barrier-member COORDINATOR ARRIVAL...: an actor that does nothing but meet others at barriers, one after the other.
// An arrival is NAME:GENERATION:PARTICIPANTS:SECONDS. Says when it has joined, and of each arrival
//   arrived NAME GENERATION code=NAME seconds=S text=message or members
// and beats until it is ended by a signal.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "base/process/clock.h"
#include "base/process/shutdown.h"
#include "member/coordinator_client.h"

namespace skein {
namespace {

int Run(const std::string& address, const std::vector<std::string>& arrivals) {
  ShutdownSignal signal;
  CoordinatorClient::Options options;
  options.address = address;
  options.join.set_role(v1::ROLE_ACTOR);
  auto client = CoordinatorClient::Join(options);
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 1;
  }
  std::printf("joined %s\n", (*client)->membership().member_id.c_str());
  std::fflush(stdout);
  for (const std::string& arrival : arrivals) {
    const std::vector<std::string> parts = absl::StrSplit(arrival, ':');
    CoordinatorClient::Barrier barrier;
    double seconds = 0;
    if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &barrier.generation) ||
        !absl::SimpleAtoi(parts[2], &barrier.participants) || !absl::SimpleAtod(parts[3], &seconds)) {
      return 64;
    }
    barrier.name = parts[0];
    barrier.timeout = absl::Seconds(seconds);
    const absl::Duration begin = MonotonicNow();
    const auto result = (*client)->ArriveAtBarrier(barrier);
    std::printf(
        "arrived %s %s code=%s seconds=%.3f text=%s\n", parts[0].c_str(), parts[1].c_str(),
        absl::StatusCodeToString(result.status().code()).c_str(), absl::ToDoubleSeconds(MonotonicNow() - begin),
        result.ok() ? absl::StrJoin(result->members, " ").c_str() : std::string(result.status().message()).c_str());
    std::fflush(stdout);
  }
  absl::Notification stop;
  signal.OnSignal([&stop] { stop.Notify(); });
  stop.WaitForNotification();
  signal.OnSignal({});
  return (*client)->Leave().ok() ? 0 : 1;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  return skein::Run(argv[1], {argv + 2, argv + argc});
}
