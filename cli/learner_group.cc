// SPDX-License-Identifier: Apache-2.0
#include "cli/learner_group.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"

namespace skein {
namespace {

// How long a rank that was started again may outlive those that have finished the run.
constexpr absl::Duration kEndTogether = absl::Seconds(2);

// True if it was killed, crashed or lost the others: causes that a restart would not repeat at once.
bool IsLoss(int code) { return code == kExitTryAgain || code > 128; }

}  // namespace

std::string LearnerName(uint32_t rank, uint32_t ranks) {
  return ranks <= 1 ? "learner" : absl::StrCat("learner-", rank);
}

absl::Status LearnerGroup::Start(const Options& options, const RunDirectory* directory) {
  options_ = options;
  directory_ = directory;
  slots_.resize(options.ranks);
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    if (absl::Status s = StartRank(rank); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status LearnerGroup::StartRank(uint32_t rank) {
  const std::string name = LearnerName(rank, options_.ranks);
  Slot& slot = slots_[rank];
  std::vector<std::string> arguments = options_.arguments;
  if (slot.started_again) {
    auto resume = std::find(arguments.begin(), arguments.end(), "--resume");
    if (resume != arguments.end() && ++resume != arguments.end()) *resume = "auto";
  }
  auto child = Child::Start({.name = name,
                             .program = options_.program,
                             .arguments = arguments,
                             .log_path = directory_->log_path(name),
                             .torch_threads = options_.torch_threads,
                             .extra_env = {absl::StrCat("RANK=", rank), absl::StrCat("WORLD_SIZE=", options_.ranks),
                                           absl::StrCat("LOCAL_RANK=", rank)},
                             .share = options_.share,
                             .enforcer = options_.enforcer});
  if (!child.ok()) return child.status();
  slot.child = *std::move(child);
  slot.hung = false;
  return directory_->NoteChild(slot.child->process().pid());
}

std::string LearnerGroup::held_by() const {
  return slots_.empty() || slots_[0].child == nullptr ? "" : slots_[0].child->held_by();
}

bool LearnerGroup::SomeFinished() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.code() == 0; });
}

absl::StatusOr<std::vector<std::string>> LearnerGroup::Mend(absl::Duration now) {
  std::vector<std::string> told;
  if (ending_) return told;
  if (SomeFinished()) {
    // The run is over: a rank that was lost need not be restarted.
    if (!finished_at_) finished_at_ = now;
    for (Slot& slot : slots_) {
      if (slot.started_again && slot.child != nullptr && now - *finished_at_ > kEndTogether) {
        slot.child->process().Signal(SIGTERM);
      }
    }
    return told;
  }
  for (uint32_t rank = 0; rank < slots_.size(); ++rank) {
    Slot& slot = slots_[rank];
    if (slot.child == nullptr) {
      if (now < slot.restart_at) continue;
      slot.started_again = true;
      ++restarts_;
      if (absl::Status s = StartRank(rank); !s.ok()) return s;
      continue;
    }
    const std::optional<int> code = slot.code();
    const bool may = slot.hung || slots_.size() > 1;
    if (!code || !may || !IsLoss(*code) || !slot.budget.Take(now)) continue;
    if (options_.on_lost) options_.on_lost(slot.child->process().pid());
    told.push_back(absl::StrCat("starting again: ", slot.child->DescribeExit(*code)));
    slot.restart_at = now + slot.backoff.Next();
    slot.child = nullptr;
  }
  return told;
}

std::vector<pid_t> LearnerGroup::Running() const {
  std::vector<pid_t> running;
  for (const Slot& slot : slots_) {
    if (slot.child != nullptr && !slot.code()) running.push_back(slot.child->process().pid());
  }
  return running;
}

void LearnerGroup::KillHung(pid_t pid) {
  for (Slot& slot : slots_) {
    if (slot.child == nullptr || slot.code() || slot.child->process().pid() != pid) continue;
    slot.hung = true;
    slot.child->process().Signal(SIGKILL);
  }
}

bool LearnerGroup::AllEnded() const {
  const bool over = ending_ || SomeFinished();
  return std::all_of(slots_.begin(), slots_.end(),
                     [over](const Slot& slot) { return slot.child == nullptr ? over : slot.code().has_value(); });
}

std::optional<LearnerGroup::Failure> LearnerGroup::FindFailure(bool stopped) const {
  const Child* found = nullptr;
  int found_code = 0;
  const bool finished = SomeFinished();
  for (const Slot& slot : slots_) {
    const int code = slot.code().value_or(0);
    if (code == 0 || (stopped && (code == kExitTryAgain || code == 128 + SIGTERM))) continue;
    if (finished && slot.started_again) continue;  // It was restarted too late to matter.
    if (found != nullptr && (found_code != kExitTryAgain || code == kExitTryAgain)) continue;
    found = slot.child.get();
    found_code = code;
  }
  if (found == nullptr) return std::nullopt;
  return Failure{found_code, found->DescribeExit(found_code)};
}

void LearnerGroup::Signal(int signal_number) {
  ending_ = true;
  for (const Slot& slot : slots_) {
    if (slot.child != nullptr) slot.child->process().Signal(signal_number);
  }
}

bool LearnerGroup::WaitForAll(absl::Duration timeout) {
  const absl::Duration until = MonotonicNow() + timeout;
  for (const Slot& slot : slots_) {
    if (slot.child != nullptr) slot.child->process().Wait(std::max(until - MonotonicNow(), absl::ZeroDuration()));
  }
  return AllEnded();
}

void LearnerGroup::KillAll() {
  Signal(SIGKILL);
  WaitForAll(absl::InfiniteDuration());
}

}  // namespace skein
