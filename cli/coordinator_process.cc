// SPDX-License-Identifier: Apache-2.0
#include "cli/coordinator_process.h"

#include <unistd.h>

#include <csignal>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/net/grpc_transport.h"
#include "base/net/join_flags.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/telemetry/format_seconds.h"
#include "launch/coordinator_addresses.h"

namespace skein {
namespace {

constexpr absl::Duration kStart = absl::Seconds(15);
constexpr absl::Duration kStop = absl::Seconds(1);
constexpr absl::Duration kStatusPeriod = absl::Seconds(1);
constexpr absl::Duration kPollDeadline = absl::Milliseconds(500);

// Of "http://HOST:PORT/" or "https://HOST:PORT/"; 0: it has none.
int PortOfUrl(const std::string& url) {
  const std::vector<std::string> parts = absl::StrSplit(url, absl::MaxSplits("://", 1));
  const auto address = ParseHostPort(std::string(absl::StripSuffix(parts.back(), "/")));
  return address.ok() ? address->port : 0;
}

std::string Silence(absl::Duration silence) {
  return absl::StrCat("the coordinator has not answered for ", FormatSeconds(absl::ToDoubleSeconds(silence)));
}

}  // namespace

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return host;
}

absl::Status CoordinatorProcess::Start() {
  if (absl::Status status = StartProcess(false); !status.ok()) return status;
  display_->Say(absl::StrCat("status page and metrics discovery: ", http_url_));
  display_->Say(absl::StrCat("watch it with: ", CommandOf(options_.program_folder, "skein"), " top",
                             address_ == kDefaultAddress ? "" : absl::StrCat(" --address ", address_),
                             JoinFlags(CredentialFilesInEnvironment(), "client")));
  return absl::OkStatus();
}

absl::Status CoordinatorProcess::StartProcess(bool again) {
  const auto program = FindProgram(options_.program_folder, "skein-coordinator");
  if (!program.ok()) return program.status();
  std::vector<std::string> arguments = {"--config",
                                        directory_->config_path(),
                                        "--listen",
                                        JoinHostPort(options_.host, options_.port),
                                        "--http",
                                        JoinHostPort(options_.host, options_.http_port),
                                        "--run-dir",
                                        directory_->path(),
                                        "--run-id",
                                        options_.run_id,
                                        "--announce-host",
                                        options_.announce_host,
                                        "--log-json",
                                        directory_->json_log_path(),
                                        "--exit-with-parent"};
  if (!again) arguments.push_back("--new-session");
  auto child = Child::Start({.name = "coordinator",
                             .program = *program,
                             .arguments = arguments,
                             .log_path = directory_->log_path("coordinator"),
                             .capture_stdout = true});
  if (!child.ok()) return child.status();
  child_ = *std::move(child);
  const auto line = child_->process().ReadLine(kStart);
  if (!line.ok()) {
    const auto code = child_->process().Wait(absl::Seconds(1));
    if (code) return child_->ExitStatus(*code == 0 ? kExitInternal : *code);
    return absl::DeadlineExceededError(absl::StrCat("coordinator does not start: ", line.status().message()));
  }
  const auto addresses = ParseCoordinatorLine(*line);
  if (!addresses.ok()) return addresses.status();
  const auto listening = ParseHostPort(addresses->grpc);
  if (!listening.ok()) return listening.status();
  options_.port = listening->port;
  options_.http_port = PortOfUrl(addresses->http_url);
  http_url_ = addresses->http_url;
  address_ = JoinHostPort(IsWildcard(options_.host) ? "127.0.0.1" : options_.host, options_.port);
  client_ = std::make_unique<StatusClient>(address_);
  next_poll_ = MonotonicNow();
  answers_.Answered(next_poll_);
  return absl::OkStatus();
}

std::optional<CoordinatorProcess::Failure> CoordinatorProcess::Watch() {
  if (const auto code = child_->process().Poll()) {
    const std::string how = child_->DescribeExit(*code);
    // It would end the same way again, unless a signal ended it.
    if (*code <= 128) return Failure{*code, how};
    return StartAgain(*code, how);
  }
  const absl::Duration silence = answers_.Silence(MonotonicNow());
  // `silent_`: only if a call has failed; this process may have been stopped for that long itself.
  if (!silent_ || silence < options_.lease) return std::nullopt;
  child_->Stop(absl::ZeroDuration());
  return StartAgain(kExitUnavailable, Silence(silence));
}

std::optional<CoordinatorProcess::Failure> CoordinatorProcess::StartAgain(int code, const std::string& why) {
  if (!budget_.Take(MonotonicNow())) {
    return Failure{code, absl::StrCat(why, "; it was started again three times within a minute")};
  }
  display_->Say(absl::StrCat("starting the coordinator again, training goes on: ", why));
  if (const absl::Status status = StartProcess(true); !status.ok()) {
    return Failure{ExitCodeOf(status), std::string(status.message())};
  }
  return std::nullopt;
}

bool CoordinatorProcess::PollStatus(bool now_due) {
  const absl::Duration asked = MonotonicNow();
  if (!now_due && asked < next_poll_) return false;
  auto status = client_->Get(kPollDeadline);
  const absl::Duration now = MonotonicNow();
  const absl::Duration due = std::exchange(next_poll_, now + kStatusPeriod);
  if (!status.ok()) {
    answers_.Missed(due, asked, kPollDeadline, now);
    NoteSilence(now);
    return false;
  }
  status_ = *std::move(status);
  answers_.Answered(now);
  if (std::exchange(silent_, false)) display_->Say("the coordinator answers again");
  return true;
}

void CoordinatorProcess::NoteSilence(absl::Duration now) {
  const absl::Duration silence = answers_.Silence(now);
  if (silent_ || silence < options_.heartbeat) return;
  silent_ = true;
  display_->Say(absl::StrCat(Silence(silence), "; training goes on without it, and it is started again after ",
                             FormatSeconds(absl::ToDoubleSeconds(options_.lease))));
}

void CoordinatorProcess::TellDead(pid_t pid) {
  const auto status = client_->Get(kPollDeadline);
  if (!status.ok()) return;
  for (const v1::MemberStatus& member : status->members()) {
    if (member.pid() != pid || member.host() != HostName()) continue;
    client_->Remove(member.member_id(), member.generation(), kPollDeadline).IgnoreError();
  }
}

void CoordinatorProcess::Stop() {
  if (child_ != nullptr) child_->Stop(kStop);
}

}  // namespace skein
