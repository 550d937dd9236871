// SPDX-License-Identifier: Apache-2.0
#include "env/registry.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/config/edit_distance.h"
#include "env/classic/cartpole.h"
#include "env/classic/mountain_car_continuous.h"
#include "env/classic/pendulum.h"
#include "env/mujoco/half_cheetah.h"
#include "env/mujoco/library.h"
#include "env/uav/uav_env.h"

namespace skein {
namespace {

struct Entry {
  const char* id;
  const char* summary;
  absl::StatusOr<EnvSpec> (*spec)(const EnvOptions& options);
  absl::StatusOr<std::unique_ptr<Env>> (*make)(const EnvOptions& options);
};

template <auto spec>
absl::StatusOr<EnvSpec> Spec(const EnvOptions&) {
  return spec();
}

template <UavTask task>
absl::StatusOr<EnvSpec> UavSpec(const EnvOptions& options) {
  if (absl::Status status = CheckUavOptions(options.uav); !status.ok()) return status;
  return MakeUavSpec(task, options.uav);
}

template <auto make>
absl::StatusOr<std::unique_ptr<Env>> Make(const EnvOptions&) {
  return make();
}

absl::StatusOr<std::unique_ptr<Env>> MakeLatencyEnv(const EnvOptions& options) { return MakeLatency(options.latency); }

template <UavTask task>
absl::StatusOr<std::unique_ptr<Env>> MakeUav(const EnvOptions& options) {
  return MakeUavEnv(task, options.uav);
}

// Ordered by id.
constexpr Entry kEntries[] = {
    {"CartPole-v1", "Balance a pole on a cart that is pushed left or right.", Spec<CartPoleSpec>, Make<MakeCartPole>},
    {"HalfCheetah-v5", "Run to the right with a planar two-legged animal (MuJoCo).", Spec<HalfCheetahSpec>,
     Make<MakeHalfCheetah>},
    {"Latency-v0", "Follow an oscillation; sleeps instead of computing, for studies of waiting.", Spec<LatencySpec>,
     MakeLatencyEnv},
    {"MountainCarContinuous-v0", "Rock a weak car out of a valley with little force.", Spec<MountainCarContinuousSpec>,
     Make<MakeMountainCarContinuous>},
    {"Pendulum-v1", "Swing a pendulum up and hold it with a weak motor.", Spec<PendulumSpec>, Make<MakePendulum>},
    {"UavCover-v0", "Visit the free cells of an arena with a team of UAVs.", UavSpec<UavTask::kCover>,
     MakeUav<UavTask::kCover>},
    {"UavNavigate-v0", "Fly a team of UAVs to their targets between obstacles.", UavSpec<UavTask::kNavigate>,
     MakeUav<UavTask::kNavigate>},
};

absl::Status UnknownEnv(const std::string& whole) {
  // An id is a few dozen letters: more would only make the search for the nearest one slow.
  const std::string id = whole.substr(0, 100);
  const auto distance = [lower = absl::AsciiStrToLower(id)](const Entry& entry) {
    return EditDistance(lower, absl::AsciiStrToLower(entry.id));
  };
  const Entry& nearest = *std::min_element(std::begin(kEntries), std::end(kEntries),
                                           [&](const Entry& a, const Entry& b) { return distance(a) < distance(b); });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown environment '", id, "'; did you mean '", nearest.id, "'? `skein envs` lists all"));
}

}  // namespace

std::vector<EnvInfo> ListEnvs() {
  std::vector<EnvInfo> envs;
  for (const Entry& entry : kEntries) envs.push_back({entry.id, entry.summary, entry.spec({}).value()});
  return envs;
}

absl::StatusOr<EnvSpec> FindEnvSpec(const std::string& id, const EnvOptions& options) {
  for (const Entry& entry : kEntries) {
    if (entry.id == id) return entry.spec(options);
  }
  return UnknownEnv(id);
}

absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id, const EnvOptions& options) {
  for (const Entry& entry : kEntries) {
    if (entry.id == id) return entry.make(options);
  }
  return UnknownEnv(id);
}

absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakeEnvs(const std::string& id, int count,
                                                           const EnvOptions& options) {
  std::vector<std::unique_ptr<Env>> envs;
  for (int i = 0; i < count; ++i) {
    auto env = MakeEnv(id, options);
    if (!env.ok()) return env.status();
    envs.push_back(*std::move(env));
  }
  return envs;
}

std::string MujocoVersion() { return MujocoLibraryVersion(); }

}  // namespace skein
