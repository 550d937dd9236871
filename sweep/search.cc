// SPDX-License-Identifier: Apache-2.0
#include "sweep/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/config/config_reflection.h"
#include "sweep/sampler.h"

namespace skein {
namespace {

constexpr double kSecondsOfHour = 3600;
constexpr char kRefused[] = "a constraint does not hold";

std::string TrialName(uint32_t number) { return absl::StrCat("trial ", number); }

}  // namespace

Search::Search(Options options, const Space* space, const Scheduler* scheduler, Suggester* suggester,
               SweepRecord* record, Launcher* launcher)
    : options_(options),
      space_(space),
      scheduler_(scheduler),
      suggester_(suggester),
      record_(record),
      launcher_(launcher) {}

const Study& Search::study() const { return options_.test ? record_->test() : record_->search(); }

std::vector<std::string> Search::TakeNews() { return std::exchange(news_, {}); }

void Search::Stop() {
  stopping_ = true;
  for (const Trial& trial : study().trials()) {
    if (trial.state != TrialState::kRunning) continue;
    for (uint32_t i = 0; i < options_.seeds; ++i) launcher_->Stop(KeyOf(trial.number, i));
  }
}

double Search::CoreSeconds() const {
  double seconds = absl::ToDoubleSeconds(launcher_->ActiveTime()) * launcher_->cores_per_slot();
  for (const Trial& trial : study().trials()) seconds += trial.core_seconds;
  return seconds;
}

double Search::StepsDone() {
  double steps = 0;
  for (const Trial& trial : study().trials()) {
    const std::vector<uint64_t>& rungs = scheduler_->rungs(trial.group);
    for (uint32_t i = 0; i < options_.seeds; ++i) {
      const bool under_way = trial.state == TrialState::kRunning && !trial.waits();
      const uint64_t begun = trial.origin ? rungs[trial.origin->rung] : 0;
      const uint64_t at = under_way               ? launcher_->Steps(KeyOf(trial.number, i))
                          : trial.results.empty() ? 0
                                                  : rungs[trial.results.rbegin()->first];
      steps += static_cast<double>(at - std::min(at, begun));
    }
  }
  return steps;
}

double Search::StepsExpected() const {
  const auto trials = static_cast<uint32_t>(exhausted_ ? study().trials().size() : options_.max_trials);
  return scheduler_->ExpectedSteps(trials) * options_.seeds;
}

bool Search::MayAdd() const {
  return !exhausted_ && !stopping_ && !out_of_budget_ && study().trials().size() < options_.max_trials;
}

absl::Status Search::Step(absl::Duration now) {
  if (absl::Status s = EndLeftovers(); !s.ok()) return s;
  if (absl::Status s = FinishCopies(); !s.ok()) return s;
  if (absl::Status s = TakeEnds(now); !s.ok()) return s;
  if (!out_of_budget_ && options_.max_core_hours > 0 && CoreSeconds() >= options_.max_core_hours * kSecondsOfHour) {
    out_of_budget_ = true;
    news_.push_back("max_core_hours are used up; a larger number goes on");
    Stop();
  }
  for (bool found = true; found;) {
    if (absl::Status s = TakeResults(&found); !s.ok()) return s;
    if (stopping_) continue;
    if (absl::Status s = Judge(); !s.ok()) return s;
  }
  if (!stopping_) {
    if (absl::Status s = Fill(now); !s.ok()) return s;
  }
  bool left = false;
  for (const Trial& trial : study().trials()) {
    for (uint32_t i = 0; i < options_.seeds; ++i) left = left || launcher_->IsActive(KeyOf(trial.number, i));
    left = left || (!stopping_ && trial.state == TrialState::kRunning);
  }
  done_ = !left && (stopping_ || !MayAdd() || !verdict_.wants_new);
  return absl::OkStatus();
}

absl::Status Search::EndLeftovers() {
  if (std::exchange(leftovers_ended_, true)) return absl::OkStatus();
  for (uint32_t number = 0; number < study().trials().size(); ++number) {
    const Trial& trial = study().trial(number);
    if (trial.state != TrialState::kRunning) continue;
    absl::Status ended;
    if (trial.waits() && IsLast(trial, trial.rung)) {
      ended = EndTrial(number, TrialState::kComplete, "");
    } else if (trial.results.empty() && !trial.origin && options_.admits && !options_.admits(trial.point)) {
      ended = EndTrial(number, TrialState::kPruned, kRefused);
    }
    if (!ended.ok()) return ended;
  }
  return absl::OkStatus();
}

absl::Status Search::TakeEnds(absl::Duration now) {
  for (const JobEnd& end : launcher_->Poll()) {
    const Trial& trial = study().trial(end.run.trial);
    const double spent = absl::ToDoubleSeconds(end.wall_time) * launcher_->cores_per_slot();
    const auto note = study().Note(trial.number, "core_seconds", trial.core_seconds + spent);
    if (absl::Status s = record_->Write({note}); !s.ok()) return s;
    if (end.how == JobEnd::How::kDiskFull) {
      return absl::ResourceExhaustedError(absl::StrCat("the disk is full: ", TrialName(trial.number), ": ", end.why,
                                                       "; make room, and the same command goes on"));
    }
    Run& run = runs_[end.run];
    if (end.how == JobEnd::How::kDone) {
      run = Run();
    } else if (end.how != JobEnd::How::kInterrupted && trial.state == TrialState::kRunning) {
      if (absl::Status s = TakeFailure(end, now); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Search::TakeFailure(const JobEnd& end, absl::Duration now) {
  const Trial& trial = study().trial(end.run.trial);
  Run& run = runs_[end.run];
  if (end.steps > run.best_steps) run.failures = 0;
  run.best_steps = std::max(run.best_steps, end.steps);
  ++run.failures;
  const auto note = study().Note(trial.number, "failures", trial.failures + 1);
  if (absl::Status s = record_->Write({note}); !s.ok()) return s;
  if (end.how == JobEnd::How::kRefused || run.failures >= options_.most_failures) {
    return EndTrial(trial.number, TrialState::kFailed, end.why);
  }
  news_.push_back(absl::StrCat(TrialName(trial.number), ": again after ", end.why));
  run.retry_at = now + options_.retry_after * (1 << (run.failures - 1));
  return absl::OkStatus();
}

absl::Status Search::EndTrial(uint32_t number, TrialState state, const std::string& why) {
  if (absl::Status s = record_->Write(study().End(number, state, why)); !s.ok()) return s;
  for (uint32_t i = 0; i < options_.seeds; ++i) launcher_->Stop(KeyOf(number, i));
  const Trial& trial = study().trial(number);
  if (state == TrialState::kFailed) news_.push_back(absl::StrCat(TrialName(number), " has failed: ", why));
  if (state == TrialState::kPruned) news_.push_back(absl::StrCat(TrialName(number), " is stopped: ", why));
  return suggester_->Tell(trial);
}

absl::Status Search::TakeResults(bool* found) {
  *found = false;
  for (uint32_t number = 0; number < study().trials().size(); ++number) {
    const Trial& trial = study().trial(number);
    if (trial.state != TrialState::kRunning) continue;
    const uint32_t begun = trial.origin ? trial.origin->rung + 1 : 0;
    const uint32_t rung = trial.results.empty() ? begun : trial.results.rbegin()->first + 1;
    if (rung > trial.rung) continue;
    bool taken = false;
    if (absl::Status s = TakeResult(number, rung, &taken); !s.ok()) return s;
    *found = *found || taken;
  }
  return absl::OkStatus();
}

absl::Status Search::TakeResult(uint32_t number, uint32_t rung, bool* found) {
  *found = false;
  const Trial& trial = study().trial(number);
  const uint64_t steps = scheduler_->rungs(trial.group)[rung];
  std::vector<double> values;
  bool has_value = true;
  for (uint32_t i = 0; i < options_.seeds; ++i) {
    const auto value = launcher_->Value(KeyOf(number, i), steps, rung == trial.rung);
    if (!value.ok()) return value.status();
    if (!*value) return absl::OkStatus();
    has_value = has_value && std::isfinite(**value);
    values.push_back(std::isfinite(**value) ? study().Signed(**value) : std::numeric_limits<double>::quiet_NaN());
  }
  *found = true;
  const bool last = IsLast(trial, rung);
  if (last && !has_value) {
    return EndTrial(number, TrialState::kFailed, absl::StrCat("the metric has no value at ", steps, " env steps"));
  }
  if (absl::Status s = record_->Write(study().Report(number, rung, steps, values, last)); !s.ok()) return s;
  const double shown = study().Signed(study().trial(number).results.at(rung));
  news_.push_back(absl::StrCat(
      TrialName(number), " at ", steps, " env steps: ",
      has_value ? config_reflection::NumberText(std::abs(shown) < 1e-12 ? 0 : shown) : "no value yet, the worst there",
      " (", PointText(*space_, trial.point), ")"));
  return suggester_->Tell(study().trial(number));
}

absl::Status Search::Judge() {
  verdict_ = scheduler_->Judge(study().trials(), MayAdd());
  for (uint32_t number : verdict_.stop) {
    if (absl::Status s = EndTrial(number, TrialState::kPruned, "others are better"); !s.ok()) return s;
  }
  for (const Scheduler::Copy& copy : verdict_.copies) {
    if (absl::Status s = MakeCopy(copy); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Search::MakeCopy(const Scheduler::Copy& copy) {
  const auto number = static_cast<uint32_t>(study().trials().size());
  const Trial& donor = study().trial(copy.donor);
  const Point point =
      Explore(*space_, donor.point, options_.sweep_seed, number, options_.resample, options_.perturb, options_.admits);
  const Trial::Origin origin{copy.donor, copy.rung};
  std::vector<nlohmann::json> records;
  // The end comes first: where a crash leaves it alone, the verdict is to copy once more.
  if (study().trial(copy.loser).state == TrialState::kRunning) {
    records = study().End(copy.loser, TrialState::kPruned, absl::StrCat("replaced by a copy of trial ", copy.donor));
  }
  records.push_back(study().CreateTrial(point, copy.rung + 1, copy.member, &origin));
  if (absl::Status s = record_->Write(records); !s.ok()) return s;
  news_.push_back(absl::StrCat(TrialName(number), " goes on from ", TrialName(copy.donor), ", in place of ",
                               TrialName(copy.loser), ": ", PointText(*space_, point)));
  copies_checked_ = false;
  if (absl::Status s = FinishCopies(); !s.ok()) return s;
  if (study().trial(copy.loser).state == TrialState::kFailed) return absl::OkStatus();
  return suggester_->Tell(study().trial(copy.loser));
}

absl::Status Search::FinishCopies() {
  // Before anything else runs: the donor must be as it was at that rung.
  if (std::exchange(copies_checked_, true)) return absl::OkStatus();
  for (const Trial& trial : study().trials()) {
    if (!trial.origin || trial.state != TrialState::kRunning) continue;
    for (uint32_t i = 0; i < options_.seeds; ++i) {
      if (absl::Status s = launcher_->Copy(KeyOf(trial.origin->trial, i), JobOf(trial, i)); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

Job Search::JobOf(const Trial& trial, uint32_t seed_index) const {
  return {KeyOf(trial.number, seed_index), trial.point, options_.SeedOf(trial, seed_index), StepsOf(trial)};
}

absl::Status Search::Fill(absl::Duration now) {
  held_slots_ = 0;
  for (uint32_t number = 0; number < study().trials().size(); ++number) {
    const Trial& trial = study().trial(number);
    if (trial.state != TrialState::kRunning || trial.waits()) continue;
    const auto more = StartJobs(trial, now);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
  for (uint32_t number : verdict_.promote) {
    if (FreeSlots() == 0) return absl::OkStatus();
    const Trial& trial = study().trial(number);
    if (!trial.waits()) continue;
    if (absl::Status s = record_->Write({study().Promote(number, trial.rung + 1)}); !s.ok()) return s;
    news_.push_back(absl::StrCat(TrialName(number), " goes on to ", StepsOf(study().trial(number)), " env steps"));
    const auto more = StartJobs(study().trial(number), now);
    if (!more.ok()) return more.status();
  }
  while (FreeSlots() > 0 && MayAdd()) {
    // Of what was there before the promotions, which changed what a scheduler may want.
    verdict_ = scheduler_->Judge(study().trials(), true);
    if (!verdict_.wants_new || !verdict_.promote.empty() || !verdict_.copies.empty()) return absl::OkStatus();
    const auto begun = StartNew();
    if (!begun.ok()) return begun.status();
    if (!*begun) return absl::OkStatus();
    if (study().trials().back().state != TrialState::kRunning) continue;
    const auto more = StartJobs(study().trials().back(), now);
    if (!more.ok()) return more.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Search::StartNew() {
  const auto point = suggester_->Suggest(study().trials());
  if (!point.ok()) return point.status();
  if (!*point) {
    exhausted_ = true;
    return false;
  }
  const auto last = static_cast<uint32_t>(scheduler_->rungs(verdict_.group).size() - 1);
  const uint32_t rung = scheduler_->pauses() ? 0 : last;
  const bool refused = options_.admits && !options_.admits(**point);
  const auto record = study().CreateTrial(**point, rung, verdict_.group, nullptr, refused ? kRefused : "");
  if (absl::Status s = record_->Write({record}); !s.ok()) return s;
  if (!refused) return true;
  const Trial& trial = study().trials().back();
  news_.push_back(absl::StrCat(TrialName(trial.number), " is stopped: ", kRefused));
  if (absl::Status s = suggester_->Tell(trial); !s.ok()) return s;
  return true;
}

absl::StatusOr<bool> Search::StartJobs(const Trial& trial, absl::Duration now) {
  for (uint32_t i = 0; i < options_.seeds; ++i) {
    const Job job = JobOf(trial, i);
    if (launcher_->IsActive(job.run)) continue;
    Run& run = runs_[job.run];
    if (now < run.retry_at) {
      ++held_slots_;
      continue;
    }
    if (FreeSlots() == 0) return false;
    const auto value = launcher_->Value(job.run, job.until, true);
    if (!value.ok()) return value.status();
    if (*value) continue;  // It is there already.
    const absl::Status started = launcher_->Start(job);
    if (absl::IsUnavailable(started)) {
      if (!run.in_use_since) run.in_use_since = now;
      if (now - *run.in_use_since > options_.in_use) return started;
      run.retry_at = now + absl::Milliseconds(200);
      ++held_slots_;
      continue;
    }
    if (absl::IsInvalidArgument(started)) {
      if (absl::Status s = EndTrial(trial.number, TrialState::kFailed, std::string(started.message())); !s.ok())
        return s;
      return true;
    }
    if (!started.ok()) return started;
    run.in_use_since.reset();
  }
  return true;
}

}  // namespace skein
