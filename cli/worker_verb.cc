// SPDX-License-Identifier: Apache-2.0
// skein worker: one actor process on this node, or slots of it for a sweep.
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/net/credentials.h"
#include "base/net/grpc_transport.h"
#include "base/process/cores.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "base/process/subprocess.h"
#include "cli/replace_process.h"
#include "cli/verbs.h"
#include "launch/launch_plan.h"
#include "sweep/slot_worker.h"

namespace skein {
namespace {

struct WorkerOptions {
  std::string address;
  std::string runners = "auto";
  std::string timeout = "30s";
  std::string metrics = "127.0.0.1:0";
  std::string sweep;  // Its folder; empty = this worker collects.
  std::string slots = "auto";
};

absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text) {
  absl::Duration timeout;
  if (absl::ParseDuration(text, &timeout) && timeout > absl::ZeroDuration()) return timeout;
  return absl::InvalidArgumentError(absl::StrCat("--timeout: got ", Quoted(text), ", want e.g. 30s or 2m"));
}

absl::Status LendSlots(const WorkerOptions& options) {
  const auto timeout = ParseTimeout(options.timeout);
  if (!timeout.ok()) return timeout.status();
  return RunSlotWorker({options.sweep, options.slots, *timeout, ProgramFolder()});
}

absl::Status RunWorker(const WorkerOptions& options) {
  if (!options.sweep.empty()) return LendSlots(options);
  const auto address = ParseAddresses(options.address);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--address: ", address.status().message()));
  }
  if (const auto metrics = ParseHostPort(options.metrics); !metrics.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--metrics: ", metrics.status().message()));
  }
  if (const absl::Status exposed = CheckExposure(options.metrics); !exposed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--metrics: ", exposed.message()));
  }
  if (const auto timeout = ParseTimeout(options.timeout); !timeout.ok()) return timeout.status();
  const uint32_t cores = Cores();
  const auto runners = ParseRunners(options.runners, cores);
  if (!runners.ok()) return runners.status();
  if (options.runners == "auto") {
    std::cout << "runners: one for each of " << cores << (cores == 1 ? " core" : " cores") << std::endl;
  }
  return ReplaceProcess(ProgramFolder(), "skein-actor",
                        {"--coordinator", options.address, "--runners", absl::StrCat(*runners), "--metrics",
                         options.metrics, "--timeout", options.timeout});
}

}  // namespace

void AddWorker(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("worker", "Help a run or a sweep: join its head, leave at will");
  auto options = std::make_shared<WorkerOptions>();
  CLI::Option* const address =
      verb->add_option("--address", options->address, "Collect for this run: its head's HOST:PORT, as it prints it");
  CLI::Option* const runners =
      verb->add_option("--runners", options->runners, "Runner threads, or auto = one a core")->capture_default_str();
  CLI::Option* const sweep =
      verb->add_option("--sweep", options->sweep, "Train for this sweep: its folder, which all machines see")
          ->type_name("DIR");
  verb->add_option("--slots", options->slots, "Trainings of the sweep at a time, or auto = as many as fit here")
      ->needs(sweep)
      ->capture_default_str();
  verb->add_option("--timeout", options->timeout, "How long to wait for the head or the sweep at first")
      ->capture_default_str();
  CLI::Option* const metrics =
      verb->add_option("--metrics", options->metrics,
                       "Where to serve /metrics; by default for this node only, 0.0.0.0:0 for all")
          ->capture_default_str();
  sweep->excludes(address)->excludes(runners)->excludes(metrics);
  verb->footer(
      "Example:\n  skein worker --address 10.0.0.1:7070 --runners 8 --metrics 0.0.0.0:0 --token-file "
      "credentials/token\n  skein worker --sweep /shared/runs/mine --slots 4");
  verb->callback([options, action] {
    if (options->address.empty() && options->sweep.empty()) throw CLI::RequiredError("--address, or --sweep DIR,");
    *action = [options] { return ReportAndExitCode("skein worker", RunWorker(*options)); };
  });
}

}  // namespace skein
