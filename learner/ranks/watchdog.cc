// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/log.h"

namespace skein {
namespace {

constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

}  // namespace

Watchdog::Watchdog(absl::Duration limit, OnStuck on_stuck)
    : limit_(limit), on_stuck_(std::move(on_stuck)), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void Watchdog::Begin(std::string what) {
  absl::MutexLock lock(&mu_);
  what_ = std::move(what);
  since_ = MonotonicNow();
}

void Watchdog::Done() {
  absl::MutexLock lock(&mu_);
  what_.reset();
}

void Watchdog::Run() {
  const absl::Duration pause = std::min(kLongestPause, limit_ / 4);
  while (true) {
    std::string stuck;
    {
      absl::MutexLock lock(&mu_);
      AwaitFor(&mu_, absl::Condition(&stopping_), pause);
      if (stopping_) return;
      if (!what_ || MonotonicNow() - since_ < limit_) continue;
      stuck = *std::exchange(what_, std::nullopt);
    }
    if (on_stuck_) {
      on_stuck_(stuck);
      continue;
    }
    spdlog::critical("{} has not ended within {}: ending this process, so that the ranks can meet again", stuck,
                     absl::FormatDuration(limit_));
    spdlog::default_logger()->flush();
    _exit(kExitTryAgain);
  }
}

}  // namespace skein
