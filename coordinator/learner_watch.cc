// SPDX-License-Identifier: Apache-2.0
#include "coordinator/learner_watch.h"

#include <algorithm>
#include <utility>

#include "google/protobuf/util/message_differencer.h"

namespace skein {
namespace {

// What the training thread alone changes. (Threads of gRPC receive and admit data all the same.)
v1::RunProgress SignsOfWork(const v1::RunProgress& progress) {
  v1::RunProgress signs;
  signs.set_state(progress.state());
  signs.set_iteration(progress.iteration());
  signs.set_policy_version(progress.policy_version());
  signs.set_checkpoint(progress.checkpoint());
  for (const char* stage : {"barrier", "update", "publish", "checkpoint"}) {
    const auto found = progress.stage_seconds().find(stage);
    if (found != progress.stage_seconds().end()) (*signs.mutable_stage_seconds())[stage] = found->second;
  }
  return signs;
}

}  // namespace

void LearnerWatch::Begin(MonotonicTime now) {
  seen_.Clear();
  changed_ = now;
  longest_ = absl::ZeroDuration();
  has_changed_ = false;
}

void LearnerWatch::Observe(const v1::RunProgress& progress, MonotonicTime now) {
  v1::RunProgress signs = SignsOfWork(progress);
  if (google::protobuf::util::MessageDifferencer::Equals(signs, seen_)) return;
  if (has_changed_) longest_ = std::max(longest_, now - changed_);
  has_changed_ = signs.stage_seconds_size() > 0;
  seen_ = std::move(signs);
  changed_ = now;
}

absl::Duration LearnerWatch::Hangs(MonotonicTime now) const {
  const absl::Duration unchanged = now - changed_;
  return unchanged > std::max(patience_, 3 * longest_) ? unchanged : absl::ZeroDuration();
}

}  // namespace skein
