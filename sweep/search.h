// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "sweep/launcher.h"
#include "sweep/scheduler.h"
#include "sweep/suggester.h"
#include "sweep/sweep_record.h"

namespace skein {

// Carries one study of a sweep to its end.
//   suggest -> trial -> jobs in slots -> results at rungs -> scheduler's verdict -> promote, copy, stop
// All that it must not forget is in the record before it acts on it: after a crash a new Search on the same record goes
// on. Time is passed in. Not thread-safe.
class Search {
 public:
  struct Options {
    bool test = false;  // Of the record's test study.
    uint32_t max_trials = 0;
    double max_core_hours = 0;  // 0 = no limit.
    uint32_t seeds = 1;
    uint64_t first_seed = 0;
    Admits admits;                // What it refuses is a trial that ends at once. Empty = all is admitted.
    bool seeds_by_group = false;  // Each group has seeds of its own.
    uint64_t SeedOf(const Trial& trial, uint32_t seed_index) const {
      return first_seed + (seeds_by_group ? uint64_t{trial.group} * seeds : 0) + seed_index;
    }
    uint64_t sweep_seed = 1;  // Of what is drawn here.
    double resample = 0.25, perturb = 1.2;
    uint32_t most_failures = 3;  // Of one training without getting further; then its trial has failed.
    absl::Duration retry_after = absl::Milliseconds(500);  // Twice as long each time.
    absl::Duration in_use = absl::Seconds(60);  // How long a run's folder may be in use by what a crash left behind.
  };
  // All pointers must outlive this.
  Search(Options options, const Space* space, const Scheduler* scheduler, Suggester* suggester, SweepRecord* record,
         Launcher* launcher);

  // One round: takes in what has ended, and starts what fits. Returns at once. Errors: what ends the sweep.
  absl::Status Step(absl::Duration now);
  // Nothing runs, and nothing is left to run.
  bool done() const { return done_; }
  // max_core_hours are used up; what runs is being stopped.
  bool out_of_budget() const { return out_of_budget_; }
  // Asks all jobs to end, and starts no more. done() follows.
  void Stop();

  const Study& study() const;
  // What has happened since the last call, a line each.
  std::vector<std::string> TakeNews();
  double CoreSeconds() const;
  // Trained, and expected in all; about.
  double StepsDone();
  double StepsExpected() const;

 private:
  struct Run {
    uint32_t failures = 0;  // In a row.
    uint64_t best_steps = 0;
    absl::Duration retry_at = -absl::InfiniteDuration();
    std::optional<absl::Duration> in_use_since;
  };

  // Ends what a crash between two records left: what is complete, and what a constraint refuses.
  absl::Status EndLeftovers();
  absl::Status TakeEnds(absl::Duration now);
  absl::Status TakeFailure(const JobEnd& end, absl::Duration now);
  // At most one of each trial, so that each is judged; *found: there may be more.
  absl::Status TakeResults(bool* found);
  absl::Status TakeResult(uint32_t number, uint32_t rung, bool* found);
  absl::Status Judge();
  absl::Status MakeCopy(const Scheduler::Copy& copy);
  absl::Status FinishCopies();
  absl::Status Fill(absl::Duration now);
  // Starts jobs of the trial that are due; false: no slot is free.
  absl::StatusOr<bool> StartJobs(const Trial& trial, absl::Duration now);
  absl::StatusOr<bool> StartNew();
  absl::Status EndTrial(uint32_t number, TrialState state, const std::string& why);
  Job JobOf(const Trial& trial, uint32_t seed_index) const;
  RunKey KeyOf(uint32_t trial, uint32_t seed_index) const { return {options_.test, trial, seed_index}; }
  uint64_t StepsOf(const Trial& trial) const { return scheduler_->rungs(trial.group)[trial.rung]; }
  bool IsLast(const Trial& trial, uint32_t rung) const { return rung + 1 >= scheduler_->rungs(trial.group).size(); }
  bool MayAdd() const;
  // A run that waits for its next try keeps its slot: what starts instead would be suggested without its result.
  uint32_t FreeSlots() const { return std::max(launcher_->free_slots(), held_slots_) - held_slots_; }

  const Options options_;
  const Space* const space_;
  const Scheduler* const scheduler_;
  Suggester* const suggester_;
  SweepRecord* const record_;
  Launcher* const launcher_;
  std::map<RunKey, Run> runs_;
  std::vector<std::string> news_;
  Scheduler::Verdict verdict_;
  uint32_t held_slots_ = 0;  // Found by Fill.
  bool exhausted_ = false;   // The suggester has no more.
  bool leftovers_ended_ = false, copies_checked_ = false;
  bool stopping_ = false, out_of_budget_ = false, done_ = false;
};

}  // namespace skein
