// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "cli/learner_group.h"
#include "cli/progress_display.h"
#include "cli/run_directory.h"
#include "launch/child.h"
#include "launch/launch_plan.h"
#include "launch/status_client.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Runs one session of a run on this machine: coordinator, learner ranks and actors as child processes.
//   start coordinator -> read its addresses -> learners, actors -> watch, once a second ask for status -> stop all
// An actor that dies, or one of several learner ranks, is restarted after a back-off, at most three times a minute; an
// actor that was drained stays away, and so does any that ends when all is trained; any other death ends the
// session.
// Without learners of its own it tells people how to start them and goes on until they have finished the run.
// Not thread-safe. All children have ended when Run() returns.
class RunSupervisor {
 public:
  struct Options {
    std::string program_folder;  // Of skein-coordinator, skein-learner, skein-actor.
    std::string host = "127.0.0.1";
    std::string announce_host = "127.0.0.1";
    int port = 0;
    int http_port = 0;
    int data_port = 0;  // Rank r's is this + r, or any if it is 0.
    ResumeMode resume = ResumeMode::kAuto;
    std::string run_id;
    uint32_t learners = 1;                            // Ranks; 0 = they are started elsewhere.
    int torch_threads = 1;                            // Of each learner.
    absl::Duration learner_stop = absl::Seconds(60);  // For the last checkpoint; they are killed after that.
    absl::Duration orphan_stop = absl::Seconds(5);    // Of the other ranks if one has failed: they cannot go on.
    absl::Duration notice_after = absl::Seconds(5);   // Of that time: then the user is told what is waited for.
    // An actor that left in order may have heard of the end before we have.
    absl::Duration restart_after_leave = absl::Seconds(5);
    std::vector<uint32_t> actor_runners;  // Runner threads of each local actor; none: tell people how to add workers,
    bool takes_workers = true;            // if the run has any use for them.
  };
  struct Outcome {
    int exit_code = 0;     // The learners', or of the process that ended the session.
    bool stopped = false;  // By the user's signal.
    std::string failure;   // What to tell the user; empty if exit_code is 0.
    std::optional<v1::StatusResponse> last_status;
    absl::Duration wall_time;
    uint64_t actor_restarts = 0;
  };

  // Both pointers must outlive the supervisor.
  RunSupervisor(Options options, const RunDirectory* directory, ProgressDisplay* display);
  ~RunSupervisor();

  // Returns when all learners have ended, something has failed, or `stop` was notified and all have been stopped:
  // learners first, all at once, which write a checkpoint, then actors, then coordinator. Call once.
  Outcome Run(const absl::Notification& stop);

 private:
  struct ActorSlot;

  // Not ok: Outcome's exit code and failure.
  absl::Status Start();
  absl::Status StartCoordinator();
  absl::Status StartLearners();
  void InviteOthers(int coordinator_port);
  absl::Status StartActor(ActorSlot* slot);
  // Both return whether the session goes on.
  bool Watch(Outcome* outcome);
  bool WatchActor(ActorSlot* slot, Outcome* outcome);
  void PollStatus(bool last);
  // Of learners that were started elsewhere, as the newest status tells.
  bool WatchLearnersElsewhere();
  void StopLearners(Outcome* outcome);
  void StopActors(absl::Duration grace);
  static void Fail(int code, const std::string& description, Outcome* outcome);

  const Options options_;
  const RunDirectory* const directory_;
  ProgressDisplay* const display_;
  std::string coordinator_address_;
  std::unique_ptr<StatusClient> status_client_;
  std::optional<v1::StatusResponse> last_status_;
  absl::Duration next_poll_ = -absl::InfiniteDuration();
  ProgressNotes notes_;
  std::unique_ptr<Child> coordinator_;
  LearnerGroup learners_;
  bool learners_left_ = false;  // Elsewhere: people have been told that they are gone.
  std::deque<ActorSlot> actors_;
};

}  // namespace skein
