// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/cleanup/cleanup.h"
#include "base/config/config.h"
#include "base/process/system_error.h"
#include "bench/rank_updates.h"
#include "bench/thread_environment.h"

namespace skein {
namespace {

// The named pipe for reading, also if the commanding process has gone already; then it is at its end.
absl::StatusOr<std::FILE*> OpenPipe(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 || fcntl(descriptor, F_SETFL, 0) != 0) return SystemError(errno, path);
  return fdopen(descriptor, "r");
}

absl::Status RunRankWorker(const RankWorkerOptions& options) {
  const auto config = ReadRunConfig(options.config_path, {});
  if (!config.ok()) return config.status();
  if (absl::Status s = EnsureTorchThreads(config->learner().torch_threads()); !s.ok()) return s;
  const auto commands = OpenPipe(options.commands_path);
  if (!commands.ok()) return commands.status();
  const absl::Cleanup close_pipe = [&] { std::fclose(*commands); };
  RankUpdates::Place place{options.rank, options.ranks, options.store_port, {}};
  place.serving = [](int port) { std::cout << port << std::endl; };
  const auto updates = RankUpdates::Make(*config, place);
  if (!updates.ok()) return updates.status();
  std::cout << "ready" << std::endl;

  char mode[16];
  int64_t count = 0;
  while (std::fscanf(*commands, "%15s %" SCNd64, mode, &count) == 2) {
    const bool sums = std::strcmp(mode, "summing") == 0;
    const auto said = (*updates)->Run(sums ? RankUpdates::Mode::kSumming : RankUpdates::Mode::kAlone, count);
    if (!said.ok()) return said.status();
    std::cout << said->dump() << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

void AddRankWorker(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand(kRankWorkerVerb, "")->group("");
  auto options = std::make_shared<RankWorkerOptions>();
  verb->add_option("--config", options->config_path)->required();
  verb->add_option("--commands", options->commands_path)->required();
  verb->add_option("--rank", options->rank)->required();
  verb->add_option("--ranks", options->ranks)->required();
  verb->add_option("--store-port", options->store_port);
  verb->callback([options, action] { *action = [options](const ShutdownSignal&) { return RunRankWorker(*options); }; });
}

}  // namespace skein
