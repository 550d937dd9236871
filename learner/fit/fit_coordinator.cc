// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/net/host_port.h"

namespace skein {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr absl::Duration kStart = absl::Seconds(15);

std::string AddressOrFree(int port) { return JoinHostPort(kHost, CheckCanListen({kHost, port}).ok() ? port : 0); }

// The word after `name` in "coordinator listening grpc=HOST:PORT http=URL".
std::string WordAfter(const std::string& line, const std::string& name) {
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    if (absl::ConsumePrefix(&word, name)) return std::string(word);
  }
  return "";
}

}  // namespace

absl::StatusOr<FitCoordinator> StartFitCoordinator(const v1::FitConfig& config, const std::string& run_directory,
                                                   uint64_t target, int port, int http_port) {
  Subprocess::Options spawn;
  spawn.argv = {absl::StrCat(ProgramFolder(), "/skein-coordinator"),
                "--set",
                absl::StrCat("name=", config.name()),
                "--set",
                absl::StrCat("seed=", config.seed()),
                "--set",
                absl::StrCat("total_steps=", std::max<uint64_t>(1, target)),
                "--set",
                "env.id=sequences",
                "--listen",
                AddressOrFree(port),
                "--http",
                AddressOrFree(http_port),
                "--run-dir",
                run_directory,
                "--store",
                "none",
                "--exit-with-parent"};
  spawn.capture_stdout = true;
  spawn.output_path = absl::StrCat(run_directory, "/coordinator.log");
  auto process = Subprocess::Spawn(spawn);
  if (!process.ok()) return absl::UnavailableError(process.status().message());
  const auto line = (*process)->ReadLine(kStart);
  FitCoordinator coordinator;
  if (line.ok()) {
    coordinator.address = WordAfter(*line, "grpc=");
    coordinator.page = WordAfter(*line, "http=");
  }
  if (coordinator.address.empty()) {
    return absl::UnavailableError(absl::StrCat("the coordinator does not start; ", spawn.output_path, " says why"));
  }
  coordinator.process = *std::move(process);
  return coordinator;
}

}  // namespace skein
