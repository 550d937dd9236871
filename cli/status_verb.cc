// SPDX-License-Identifier: Apache-2.0
// skein status: what a run is doing.
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "base/process/exit_code.h"
#include "base/process/terminal.h"
#include "cli/progress_text.h"
#include "cli/status_json.h"
#include "cli/verbs.h"
#include "launch/status_client.h"

namespace skein {
namespace {

struct StatusOptions {
  std::string address = kDefaultAddress;
  bool json = false;
};

absl::Status PrintStatus(const StatusOptions& options) {
  if (const auto address = ParseAddresses(options.address); !address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--address: ", address.status().message()));
  }
  const auto status = StatusClient(options.address).Get(absl::Seconds(3));
  if (!status.ok()) return status.status();
  if (!options.json) {
    const int width = TerminalWidth(stdout);
    std::cout << FormatStatusTable(*status, width > 0 ? width : kUnlimitedWidth) << std::flush;
    return absl::OkStatus();
  }
  const auto text = StatusAsJson(*status);
  if (!text.ok()) return text.status();
  std::cout << *text << std::endl;
  return absl::OkStatus();
}

}  // namespace

void AddStatus(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("status", "Show a run: progress, rates, members, first error");
  auto options = std::make_shared<StatusOptions>();
  verb->add_option("--address", options->address, "The head's HOST:PORT")->capture_default_str();
  verb->add_flag("--json", options->json, "Print one JSON object (skein.v1.StatusResponse)");
  verb->footer("Example:\n  skein status --address 10.0.0.1:7070");
  verb->callback(
      [options, action] { *action = [options] { return ReportAndExitCode("skein status", PrintStatus(*options)); }; });
}

}  // namespace skein
