// SPDX-License-Identifier: Apache-2.0
#include "cli/learner_group.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/exit_code.h"

namespace skein {

std::string LearnerName(uint32_t rank, uint32_t ranks) {
  return ranks <= 1 ? "learner" : absl::StrCat("learner-", rank);
}

absl::Status LearnerGroup::Start(const Options& options, const RunDirectory& directory) {
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    const std::string name = LearnerName(rank, options.ranks);
    auto child = Child::Start({.name = name,
                               .program = options.program,
                               .arguments = options.arguments,
                               .log_path = directory.log_path(name),
                               .torch_threads = options.torch_threads,
                               .extra_env = {absl::StrCat("RANK=", rank), absl::StrCat("WORLD_SIZE=", options.ranks),
                                             absl::StrCat("LOCAL_RANK=", rank)}});
    if (!child.ok()) return child.status();
    children_.push_back(*std::move(child));
    if (absl::Status s = directory.NoteChild(children_.back()->process().pid()); !s.ok()) return s;
  }
  return absl::OkStatus();
}

bool LearnerGroup::AllEnded() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->process().Poll().has_value(); });
}

std::optional<LearnerGroup::Failure> LearnerGroup::FindFailure(bool stopped) const {
  const Child* found = nullptr;
  int found_code = 0;
  for (const auto& child : children_) {
    const int code = child->process().Poll().value_or(0);
    if (code == 0 || (stopped && (code == kExitTryAgain || code == 128 + SIGTERM))) continue;
    if (found != nullptr && (found_code != kExitTryAgain || code == kExitTryAgain)) continue;
    found = child.get();
    found_code = code;
  }
  if (found == nullptr) return std::nullopt;
  return Failure{found_code, found->DescribeExit(found_code)};
}

void LearnerGroup::Signal(int signal_number) {
  for (const auto& child : children_) child->process().Signal(signal_number);
}

bool LearnerGroup::WaitForAll(absl::Duration timeout) {
  const absl::Duration until = MonotonicNow() + timeout;
  for (const auto& child : children_) child->process().Wait(std::max(until - MonotonicNow(), absl::ZeroDuration()));
  return AllEnded();
}

void LearnerGroup::KillAll() {
  Signal(SIGKILL);
  WaitForAll(absl::InfiniteDuration());
}

}  // namespace skein
