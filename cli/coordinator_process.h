// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/process/restart_budget.h"
#include "cli/answer_clock.h"
#include "cli/progress_display.h"
#include "cli/run_directory.h"
#include "launch/child.h"
#include "launch/status_client.h"
#include "skein/v1/status.pb.h"

// Starts and watches the run's coordinator on this machine.
namespace skein {

// This machine, as its members call it (MemberStatus.host).
std::string HostName();

// The run's coordinator as a child process, and the run's status, which it is asked for once a second.
//   Start -> Watch, a few times a second -> Stop
// One that was ended by a signal, or that has not answered for a lease (AnswerClock), is started again at the same
// addresses, at most three times a minute. It takes the run's members over from its log. Not thread-safe.
class CoordinatorProcess {
 public:
  struct Options {
    std::string program_folder;
    std::string host = "127.0.0.1";
    std::string announce_host = "127.0.0.1";
    int port = 0;
    int http_port = 0;
    std::string run_id;
    absl::Duration heartbeat = absl::Seconds(1);  // Silence of this length is reported,
    absl::Duration lease = absl::Seconds(5);      // and a coordinator that was silent for this long is started again.
  };
  struct Failure {
    int code = 0;
    std::string description;
  };

  // Both pointers must outlive this.
  CoordinatorProcess(Options options, const RunDirectory* directory, ProgressDisplay* display)
      : options_(std::move(options)), directory_(directory), display_(display) {}

  // Waits until it listens, 15 s at most. Call once. Errors as Child::Start and Child::ExitStatus, DeadlineExceeded.
  absl::Status Start();
  bool started() const { return !address_.empty(); }
  const std::string& address() const { return address_; }    // Where this machine's processes reach it.
  int port() const { return options_.port; }                 // REQUIRES: started.
  const std::string& http_url() const { return http_url_; }  // REQUIRES: started.

  // Starts it again if that is due. nullopt: it runs. Failure: it has ended, and cannot be started again or may not.
  std::optional<Failure> Watch();
  // Asks for the status, if it was not asked for within the last second or if `now_due`. Returns whether it answered.
  bool PollStatus(bool now_due);
  // The newest status that it gave; it may be old.
  const std::optional<v1::StatusResponse>& status() const { return status_; }

  // Tells it that the process of this machine with that id is dead, so that no process waits for the end of its lease.
  // Best effort: one that cannot be told notices it by the lease.
  void TellDead(pid_t pid);

  void Stop();

 private:
  absl::Status StartProcess(bool again);
  std::optional<Failure> StartAgain(int code, const std::string& why);
  void NoteSilence(absl::Duration now);

  Options options_;  // `port` and `http_port` are the actual ones once it has started.
  const RunDirectory* const directory_;
  ProgressDisplay* const display_;
  std::unique_ptr<Child> child_;
  std::string address_;
  std::string http_url_;
  std::unique_ptr<StatusClient> client_;
  std::optional<v1::StatusResponse> status_;
  absl::Duration next_poll_;
  AnswerClock answers_;  // Its start counts as one.
  bool silent_ = false;  // Its silence was reported.
  RestartBudget budget_{3, absl::Minutes(1)};
};

}  // namespace skein
