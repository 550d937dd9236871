// SPDX-License-Identifier: Apache-2.0
#include "coordinator/actor_demand.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/membership.h"

namespace skein {
namespace {

bool IsOver(v1::RunState state) {
  return state == v1::RUN_STATE_FINISHED || state == v1::RUN_STATE_STOPPED || state == v1::RUN_STATE_FAILED;
}

absl::Status ReadCount(const std::map<std::string, std::string>& metadata, const std::string& key, uint32_t* count) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || absl::SimpleAtoi(found->second, count)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(key, ": want a whole number from 0, got '", found->second, "'"));
}

double Sum(const google::protobuf::Map<std::string, double>& seconds, std::initializer_list<const char*> stages) {
  double sum = 0;
  for (const char* stage : stages) {
    const auto found = seconds.find(stage);
    if (found != seconds.end()) sum += found->second;
  }
  return sum;
}

}  // namespace

absl::StatusOr<ActorBounds> ParseActorBounds(const std::map<std::string, std::string>& metadata) {
  ActorBounds bounds;
  if (absl::Status s = ReadCount(metadata, "minActors", &bounds.min_actors); !s.ok()) return s;
  if (absl::Status s = ReadCount(metadata, "maxActors", &bounds.max_actors); !s.ok()) return s;
  if (bounds.min_actors > bounds.max_actors) {
    return absl::InvalidArgumentError(
        absl::StrCat("minActors is ", bounds.min_actors, ", more than maxActors, ", bounds.max_actors));
  }
  const auto ratio = metadata.find("targetWaitRatio");
  if (ratio != metadata.end() &&
      !(absl::SimpleAtod(ratio->second, &bounds.wait_ratio) && bounds.wait_ratio > 0 && bounds.wait_ratio < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("targetWaitRatio: want a number between 0 and 1, got '", ratio->second, "'"));
  }
  return bounds;
}

double ActorsForWaitRatio(const ActorEvidence& evidence, double wait_ratio, bool while_waiting_only) {
  const double w = evidence.wait_ratio, t = wait_ratio;
  if (w >= 1) return std::numeric_limits<double>::infinity();
  if (while_waiting_only) return evidence.actors * w * (1 - t) / ((1 - w) * t);
  return evidence.actors * evidence.busy_ratio * (1 - t) / (1 - w);
}

ActorDemand::ActorDemand(const v1::RunConfig& config)
    : on_device_(config.sync().mode() == v1::SYNC_MODE_ON_DEVICE),
      while_waiting_only_(config.sync().mode() == v1::SYNC_MODE_ON_POLICY),
      env_groups_(config.rollout().num_envs() / std::max(config.rollout().envs_per_runner(), 1u)) {}

void ActorDemand::Observe(const v1::StatusResponse& status) {
  const v1::RunProgress& progress = status.progress();
  active_ = !IsOver(progress.state());
  Members members;
  Reading now;
  now.at = status.uptime_seconds();
  now.wait = Sum(progress.stage_seconds(), {"barrier"});
  now.work = Sum(progress.stage_seconds(), {"update", "publish", "checkpoint"});
  actors_ = runners_ = ranks_ = 0;
  for (const v1::MemberStatus& member : status.members()) {
    members.emplace_back(member.member_id(), member.generation());
    if (member.role() == RoleName(v1::ROLE_LEARNER)) {
      ++ranks_;
      continue;
    }
    ++actors_;
    runners_ += std::max(member.runners(), 1u);
    const auto& seconds = member.report().stage_seconds();
    now.actors_wait += Sum(seconds, {"wait"});
    now.actors_work += Sum(seconds, {"env_step", "inference", "build"});
  }

  const bool same_members = members == members_;
  const bool iteration_ended = progress.iteration() != iteration_;
  members_ = std::move(members);
  iteration_ = progress.iteration();
  if (!same_members || actors_ == 0 || progress.state() != v1::RUN_STATE_TRAINING) {
    begin_.reset();
  } else if (iteration_ended && !begin_) {
    begin_ = now;
  } else if (iteration_ended && now.at - begin_->at >= kWindowSeconds) {
    Measure(*begin_, now);
    begin_ = now;
  }
}

void ActorDemand::Measure(const Reading& from, const Reading& to) {
  const double wait = to.wait - from.wait, work = to.work - from.work;
  if (wait + work <= 0) return;
  ActorEvidence evidence{actors_, wait / (wait + work), 1};
  const double actors_wait = to.actors_wait - from.actors_wait, actors_work = to.actors_work - from.actors_work;
  if (actors_work > 0) evidence.busy_ratio = actors_work / (actors_wait + actors_work);
  evidence_ = evidence;
}

uint32_t ActorDemand::Wanted(const ActorBounds& bounds) const {
  if (!active_ || on_device_) return bounds.min_actors;
  double wanted = actors_;
  if (evidence_) {
    const double measured = evidence_->actors;
    wanted = ActorsForWaitRatio(*evidence_, bounds.wait_ratio, while_waiting_only_);
    if (std::abs(wanted - measured) <= kTolerance * measured) wanted = measured;
    wanted = std::clamp(wanted, measured / kLargestStep, measured * kLargestStep);
    wanted = std::ceil(wanted);
  }
  if (env_groups_ > 0) {
    const double runners_each = actors_ == 0 ? 1 : static_cast<double>(runners_) / actors_;
    wanted = std::min(wanted, std::ceil(env_groups_ / runners_each));
  }
  wanted = std::max({wanted, static_cast<double>(ranks_), 1.0});
  return static_cast<uint32_t>(
      std::clamp(wanted, static_cast<double>(bounds.min_actors), static_cast<double>(bounds.max_actors)));
}

}  // namespace skein
