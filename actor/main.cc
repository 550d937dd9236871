// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "actor/actor.h"
#include "base/command/arguments.h"
#include "base/process/exit_code.h"
#include "base/process/shutdown.h"
#include "env/registry.h"
#include "member/member_flags.h"

namespace {

constexpr char kProgram[] = "skein-actor";

}  // namespace

int main(int argc, char** argv) {
  skein::ShutdownSignal shutdown;
  skein::ActorOptions options;
  skein::MemberFlags flags;
  CLI::App app("Steps environments and sends trajectories. Usually started by `skein train` or `skein worker`.",
               kProgram);
  app.add_option("--coordinator", options.coordinator,
                 "Address of the coordinator, host:port; with standbys all of theirs, a:1,b:2")
      ->required();
  app.add_option("--runners", options.runners, "Runner threads")->capture_default_str();
  app.add_option("--metrics", options.metrics, "Address for /metrics; port 0 takes a free one")->capture_default_str();
  app.add_option("--announce-host", options.announce_host, "Host under which Prometheus reaches this machine");
  app.add_option("--drained-exit-code", options.drained_exit_code,
                 "Exit code after a drain; tells a supervisor not to start it again")
      ->check(CLI::Range(0, 63))
      ->capture_default_str();
  skein::AddMemberFlags(&app, &flags);
  if (const auto code = skein::ParseArguments(app, argc, argv, {{"MuJoCo", skein::MujocoVersion()}})) return *code;
  const auto timeout = skein::BeginMember(kProgram, flags);
  if (!timeout.ok()) return skein::ReportAndExitCode(kProgram, timeout.status());
  options.timeout = *timeout;
  absl::Status status = options.Validate();
  bool drained = false;
  if (status.ok()) status = skein::RunActor(options, &shutdown, &drained);
  if (!status.ok() || !drained) skein::EndProcess(skein::ReportAndExitCode(kProgram, status));
  std::printf("drained: this actor has delivered all that it had begun and stays away\n");
  skein::EndProcess(skein::FinishOutput(kProgram, options.drained_exit_code));
}
