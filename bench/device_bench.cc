// SPDX-License-Identifier: Apache-2.0
// skein bench device: what this machine's device for training can do at most.
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/command/arguments.h"
#include "base/process/cores.h"
#include "bench/device_speed.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/thread_environment.h"
#include "bench/verbs.h"
#include "learner/network/torch_version.h"

namespace skein {
namespace {

struct DeviceBenchOptions {
  std::string device = "auto";
  double seconds = 1;
  std::string json_path;
};

absl::Status RunDeviceBench(const DeviceBenchOptions& options) {
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  if (absl::Status s = EnsureTorchThreads(Cores()); !s.ok()) return s;
  const auto speed = MeasureDevice(options.device, static_cast<int>(Cores()), absl::Seconds(options.seconds));
  if (!speed.ok()) return speed.status();
  Report report;
  report.machine = DescribeMachine(TorchVersion());
  report.config = {{"verb", "device"}, {"device", speed->at("device")}, {"seconds", options.seconds}};
  report.summary = *speed;
  report.summary["gpus"] = ListGpus();
  report.rows = {*speed};
  if (options.json_path == "-") return WriteReport(report, "-");
  std::cout << FormatMachine(report.machine) << "\n";
  for (const Json& gpu : report.summary["gpus"]) {
    std::cout << absl::StrFormat("GPU %s, %.1f GiB\n", gpu["name"].get<std::string>(),
                                 gpu.value("memory_bytes", 0.0) / 0x1p30);
  }
  std::cout << (*speed)["device"].get<std::string>() << ":";
  for (const auto& [name, value] : speed->items()) {
    if (value.is_number()) std::cout << absl::StrFormat(" %s %.3g", name, value.get<double>());
  }
  std::cout << std::endl;
  return options.json_path.empty() ? absl::OkStatus() : WriteReport(report, options.json_path);
}

}  // namespace

void AddBenchDevice(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("device", "Matrix products and copies on the device for training: its limit");
  auto options = std::make_shared<DeviceBenchOptions>();
  verb->add_option("--device", options->device, "auto, cpu or cuda:N")->capture_default_str();
  verb->add_option("--seconds", options->seconds, "Seconds of each measurement")
      ->check(NumberWithin(0.01, 3600))
      ->capture_default_str();
  verb->add_option("--json", options->json_path,
                   "Write machine, config, summary and rows to this file; without a file to standard output")
      ->expected(0, 1)
      ->default_str("-")
      ->type_name("FILE");
  verb->footer("Example:\n  skein bench device --device cuda:0");
  verb->callback(
      [options, action] { *action = [options](const ShutdownSignal&) { return RunDeviceBench(*options); }; });
}

}  // namespace skein
