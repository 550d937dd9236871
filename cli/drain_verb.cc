// SPDX-License-Identifier: Apache-2.0
// skein drain: an actor finishes what it has begun and leaves the run.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "cli/verbs.h"
#include "launch/status_client.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(3);
constexpr absl::Duration kPollPeriod = absl::Milliseconds(200);

struct DrainOptions {
  std::string member;
  std::string address = kDefaultAddress;
  bool wait = false;
  bool json = false;
  std::string timeout = "2m";
};

bool IsMember(const v1::StatusResponse& status, const std::string& member) {
  return std::any_of(status.members().begin(), status.members().end(),
                     [&](const v1::MemberStatus& other) { return other.member_id() == member; });
}

absl::Status WaitUntilGone(const StatusClient& client, const std::string& member, absl::Duration timeout) {
  const absl::Duration deadline = MonotonicNow() + timeout;
  while (true) {
    const auto status = client.Get(kDeadline);
    if (!status.ok()) return status.status();
    if (!IsMember(*status, member)) return absl::OkStatus();
    if (MonotonicNow() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(member, " is asked to leave and is there still after ", absl::FormatDuration(timeout)));
    }
    absl::SleepFor(kPollPeriod);
  }
}

absl::Status DrainMember(const DrainOptions& options) {
  if (const auto address = ParseAddresses(options.address); !address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--address: ", address.status().message()));
  }
  absl::Duration timeout;
  if (!absl::ParseDuration(options.timeout, &timeout) || timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout: got ", Quoted(options.timeout), ", want e.g. 30s or 2m"));
  }
  const StatusClient client(options.address);
  if (absl::Status status = client.Drain(options.member, kDeadline); !status.ok()) {
    // An unknown member is a usage error, not bad data.
    const bool wrong_name = absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
    return wrong_name ? absl::InvalidArgumentError(status.message()) : status;
  }
  if (!options.json) std::cout << options.member << " finishes what it has begun, then leaves" << std::endl;
  if (options.wait) {
    if (absl::Status status = WaitUntilGone(client, options.member, timeout); !status.ok()) return status;
    if (!options.json) std::cout << options.member << " has left" << std::endl;
  }
  if (options.json) {
    const nlohmann::ordered_json done = {{"member", options.member}, {"has_left", options.wait}};
    std::cout << done.dump(2) << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

void AddDrain(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("drain", "Let an actor finish what it has begun and leave");
  auto options = std::make_shared<DrainOptions>();
  verb->add_option("member", options->member, "Its name, e.g. actor-3; `skein status` shows them")->required();
  verb->add_option("--address", options->address, "The head's HOST:PORT")->capture_default_str();
  verb->add_flag("--wait", options->wait, "Return when it has left");
  verb->add_flag("--json", options->json, "Print one JSON object at the end");
  verb->add_option("--timeout", options->timeout, "How long to wait at most")->capture_default_str();
  verb->footer(
      "Nothing it has collected is lost. Its `skein worker` ends with code 0.\n"
      "Example:\n  skein drain actor-3 --address 10.0.0.1:7070 --wait");
  verb->callback(
      [options, action] { *action = [options] { return ReportAndExitCode("skein drain", DrainMember(*options)); }; });
}

}  // namespace skein
