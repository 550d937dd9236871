// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "skein/v1/status.pb.h"
#include "tests/integration/cluster.h"

// What fault tests ask a running cluster.
namespace skein {

inline constexpr char kEndless[] = "total_steps=1000000000";

inline int LiveMembers(const v1::StatusResponse& status, const std::string& role) {
  return static_cast<int>(std::count_if(status.members().begin(), status.members().end(),
                                        [&](const v1::MemberStatus& member) { return member.role() == role; }));
}

inline auto LiveActors(int actors) {
  return [actors](const v1::StatusResponse& status) { return LiveMembers(status, "actor") == actors; };
}

inline auto TrainedAtLeast(uint64_t env_steps) {
  return [env_steps](const v1::StatusResponse& status) { return status.progress().env_steps() >= env_steps; };
}

// nullptr: it is not there.
inline const v1::MemberStatus* FindMember(const v1::StatusResponse& status, const std::string& id) {
  for (const v1::MemberStatus& member : status.members()) {
    if (member.member_id() == id) return &member;
  }
  return nullptr;
}

// Trained on so far; 0 if the coordinator does not answer.
inline uint64_t EnvSteps(const Cluster& cluster) {
  const auto status = cluster.Status();
  return status.ok() ? status->progress().env_steps() : 0;
}

// The best rate of env steps trained on, per second, over windows of `window`, until one reaches `wanted` or `limit` is
// over: what else the machine does can only lower a rate.
inline double BestRate(const Cluster& cluster, absl::Duration window, double wanted, absl::Duration limit) {
  double best = 0;
  const absl::Time end = absl::Now() + limit;
  do {
    const uint64_t before = EnvSteps(cluster);
    const absl::Time begin = absl::Now();
    absl::SleepFor(window);
    const uint64_t after = EnvSteps(cluster);
    if (before == 0 || after < before) continue;
    best = std::max(best, static_cast<double>(after - before) / absl::ToDoubleSeconds(absl::Now() - begin));
  } while (best < wanted && absl::Now() < end);
  return best;
}

}  // namespace skein
