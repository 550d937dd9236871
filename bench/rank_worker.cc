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
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/cleanup/cleanup.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

// The named pipe for reading, also if the commanding process has gone already; then it is at its end.
absl::StatusOr<std::FILE*> OpenPipe(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 || fcntl(descriptor, F_SETFL, 0) != 0) return SystemError(errno, path);
  return fdopen(descriptor, "r");
}

absl::Status RunRankWorker(const RankWorkerOptions& options, const MakeRankWork& make) {
  RankPlace place{options.rank, options.ranks, options.store_port, {}};
  place.serving = [](int port) { std::cout << port << std::endl; };
  const auto work = make(options, place);
  if (!work.ok()) return work.status();
  const auto commands = OpenPipe(options.commands_path);
  if (!commands.ok()) return commands.status();
  const absl::Cleanup close_pipe = [&] { std::fclose(*commands); };
  std::cout << "ready" << std::endl;

  char mode[16];
  int64_t count = 0;
  while (std::fscanf(*commands, "%15s %" SCNd64, mode, &count) == 2) {
    const auto said = (*work)(std::strcmp(mode, "summing") == 0 ? RankMode::kSumming : RankMode::kAlone, count);
    if (!said.ok()) return said.status();
    std::cout << said->dump() << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

void AddRankWorker(CLI::App* app, const char* name, MakeRankWork make, BenchAction* action) {
  CLI::App* verb = app->add_subcommand(name, "")->group("");
  auto options = std::make_shared<RankWorkerOptions>();
  verb->add_option("--config", options->config_path)->required();
  verb->add_option("--data", options->data_path);
  verb->add_option("--commands", options->commands_path)->required();
  verb->add_option("--rank", options->rank)->required();
  verb->add_option("--ranks", options->ranks)->required();
  verb->add_option("--store-port", options->store_port);
  verb->callback([options, make = std::move(make), action] {
    *action = [options, make](const ShutdownSignal&) { return RunRankWorker(*options, make); };
  });
}

}  // namespace skein
