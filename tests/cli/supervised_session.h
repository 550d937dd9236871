// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/config/config.h"
#include "cli/run_supervisor.h"
#include "gtest/gtest.h"
#include "tests/cli/scratch_folder.h"

namespace skein {

// Prints an address, at which no process listens. kRunUntilTerm goes on until SIGTERM.
inline constexpr char kCoordinatorLine[] = "echo 'coordinator listening grpc=127.0.0.1:1 http=http://127.0.0.1:2/'\n";
inline constexpr char kRunUntilTerm[] =
    "trap 'echo $0 stopped >> $(dirname $0)/events; exit 0' TERM\n"
    "while :; do sleep 0.01; done\n";

// A session whose programs are scripts in `folder`.
struct SupervisedSession {
  SupervisedSession() : out(std::tmpfile()), display(out, 0) {
    config = LoadRunConfig("", {"name=run", "env.id=CartPole-v1"}, 2).value();
    options.program_folder = folder.path();
    options.run_id = "run-1";
    options.actor_runners = {1};
    folder.WriteScript("skein-coordinator", absl::StrCat(kCoordinatorLine, kRunUntilTerm));
    folder.WriteScript("skein-learner", "exit 0");
    folder.WriteScript("skein-actor", kRunUntilTerm);
  }
  ~SupervisedSession() { std::fclose(out); }

  RunSupervisor::Outcome Run() {
    const auto directory = RunDirectory::Open(folder.path(), config, ResumeMode::kAuto);
    EXPECT_TRUE(directory.ok()) << directory.status();
    RunSupervisor supervisor(options, &*directory, &display);
    return supervisor.Run(stop);
  }

  ScratchFolder folder;
  // What was displayed so far.
  std::string Said() const {
    std::string text(8192, ' ');
    text.resize(static_cast<size_t>(pread(fileno(out), text.data(), text.size(), 0)));
    return text;
  }

  std::FILE* out;
  ProgressDisplay display;
  v1::RunConfig config;
  RunSupervisor::Options options;
  absl::Notification stop;
};

// Notifies `stop` as soon as the file is there.
inline std::thread StopWhenThere(SupervisedSession* session, const std::string& file) {
  return std::thread([session, file] {
    while (session->folder.Read(file).empty()) std::this_thread::yield();
    session->stop.Notify();
  });
}

}  // namespace skein
