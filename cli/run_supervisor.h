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
#include "base/process/share_enforcer.h"
#include "cli/coordinator_process.h"
#include "cli/learner_group.h"
#include "cli/progress_display.h"
#include "cli/run_directory.h"
#include "cli/silent_learners.h"
#include "launch/child.h"
#include "launch/launch_plan.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Runs one session of a run on this machine: coordinator, learner ranks and actors as child processes.
//   start coordinator -> read its addresses -> learners, actors -> watch, poll status once a second -> stop all
// An actor that dies, or one of several learner ranks, is restarted after a back-off, at most three times a minute, and
// an actor that fails (code 70) at most three times while the run takes no step. A
// drained actor is not restarted, nor is one that ends when training is complete. A coordinator that a signal ended, or
// that does not answer, is restarted too (CoordinatorProcess), and a learner that hangs (SilentLearners). Any other
// death ends the session.
// Without learners of its own it prints how to start them and runs until they have finished the run. Not thread-safe.
// All children have ended when Run() returns.
class RunSupervisor {
 public:
  struct Options {
    std::string program_folder;  // Of skein-coordinator, skein-learner, skein-actor.
    std::string host = "127.0.0.1";
    std::string announce_host = "127.0.0.1";
    int port = 0;
    int http_port = 0;
    int data_port = 0;  // Rank r uses this + r; 0 = any free port.
    ResumeMode resume = ResumeMode::kAuto;
    std::string run_id;
    absl::Duration heartbeat = absl::Seconds(1);  // As CoordinatorProcess::Options.
    absl::Duration lease = absl::Seconds(5);
    uint32_t learners = 1;                            // Ranks; 0 = they are started elsewhere.
    int torch_threads = 1;                            // Of each learner.
    absl::Duration learner_stop = absl::Seconds(60);  // For the last checkpoint; then they are killed.
    absl::Duration orphan_stop = absl::Seconds(5);    // For the other ranks after one failed: they cannot continue.
    absl::Duration notice_after = absl::Seconds(5);   // Within that time: then prints what it waits for.
    // Delay before an actor that exited normally is restarted: it may have received the run's end before this process.
    absl::Duration restart_after_leave = absl::Seconds(5);
    std::vector<uint32_t> actor_runners;  // Runner threads of each local actor; none: print how to add workers,
    bool takes_workers = true;            // if the run can use them.
    struct Shares {
      ResourceShare actor, learner;  // Of each.
    } shares;
    uint64_t stop_at_step = 0;  // Of each learner; 0 = they train to the target.
  };
  struct Outcome {
    int exit_code = 0;                              // Of the learners, or of the process that ended the session.
    bool stopped = false;                           // By the user's signal.
    std::string failure;                            // Message for the user; empty if exit_code is 0.
    std::optional<v1::StatusResponse> last_status;  // The newest one that the coordinator gave.
    bool status_is_final = false;                   // It was given after the learners of this machine had ended.
    absl::Duration wall_time;
    uint64_t actor_restarts = 0;
  };

  // Both pointers must outlive the supervisor.
  RunSupervisor(Options options, const RunDirectory* directory, ProgressDisplay* display);
  ~RunSupervisor();

  // Returns when all learners have ended, something has failed, or `stop` was notified, after stopping all children:
  // first the learners, all at once, which write a checkpoint; then the actors; then the coordinator. Call once.
  Outcome Run(const absl::Notification& stop);

 private:
  struct ActorSlot;

  // An error becomes Outcome's exit code and failure.
  absl::Status Start();
  absl::Status StartLearners();
  void InviteOthers();
  // Where other machines find the coordinator.
  std::string Address() const;
  // Adds actors to the run, from any folder.
  std::string WorkerCommand() const;
  // How shares are enforced, if there are any.
  void TellShares();
  absl::Status StartActor(ActorSlot* slot);
  // Both return whether the session continues.
  bool Watch(Outcome* outcome);
  bool WatchActor(ActorSlot* slot, Outcome* outcome);
  // Returns whether the coordinator answered. `last`: asks now.
  bool PollStatus(bool last);
  // Watches learners that were started elsewhere, through the newest status.
  bool WatchLearnersElsewhere();
  void StopLearners(Outcome* outcome);
  void StopActors(absl::Duration grace);
  // Ends learners that hang, by the newest status.
  void KillHungLearners();
  static void Fail(int code, const std::string& description, Outcome* outcome);

  const Options options_;
  const RunDirectory* const directory_;
  ProgressDisplay* const display_;
  ProgressNotes notes_;
  ShareEnforcer enforcer_;
  CoordinatorProcess coordinator_;
  LearnerGroup learners_;
  SilentLearners silent_;
  bool learners_left_ = false;  // Learners elsewhere: their leaving has been reported.
  std::deque<ActorSlot> actors_;
};

}  // namespace skein
