// SPDX-License-Identifier: Apache-2.0
#include "env/registry.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/edit_distance.h"
#include "env/classic/cartpole.h"
#include "env/classic/mountain_car_continuous.h"
#include "env/classic/pendulum.h"
#include "env/mujoco/half_cheetah.h"
#include "env/mujoco/library.h"

namespace skein {
namespace {

struct Entry {
  const EnvSpec& (*spec)();
  const char* summary;
  absl::StatusOr<std::unique_ptr<Env>> (*make)(const LatencyOptions& latency);
};

template <auto make>
absl::StatusOr<std::unique_ptr<Env>> Make(const LatencyOptions&) {
  return make();
}

// Ordered by id.
constexpr Entry kEntries[] = {
    {CartPoleSpec, "Balance a pole on a cart that is pushed left or right.", Make<MakeCartPole>},
    {HalfCheetahSpec, "Run to the right with a planar two-legged animal (MuJoCo).", Make<MakeHalfCheetah>},
    {LatencySpec, "Follow an oscillation; sleeps instead of computing, for studies of waiting.", MakeLatency},
    {MountainCarContinuousSpec, "Rock a weak car out of a valley with little force.", Make<MakeMountainCarContinuous>},
    {PendulumSpec, "Swing a pendulum up and hold it with a weak motor.", Make<MakePendulum>},
};

absl::Status UnknownEnv(const std::string& whole) {
  // An id is a few dozen letters: more would only make the search for the nearest one slow.
  const std::string id = whole.substr(0, 100);
  const auto distance = [lower = absl::AsciiStrToLower(id)](const Entry& entry) {
    return EditDistance(lower, absl::AsciiStrToLower(entry.spec().id));
  };
  const Entry& nearest = *std::min_element(std::begin(kEntries), std::end(kEntries),
                                           [&](const Entry& a, const Entry& b) { return distance(a) < distance(b); });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown environment '", id, "'; did you mean '", nearest.spec().id, "'? `skein envs` lists all"));
}

}  // namespace

std::vector<EnvInfo> ListEnvs() {
  std::vector<EnvInfo> envs;
  for (const Entry& entry : kEntries) envs.push_back({entry.spec().id, entry.summary, entry.spec()});
  return envs;
}

absl::StatusOr<EnvSpec> FindEnvSpec(const std::string& id) {
  for (const Entry& entry : kEntries) {
    if (entry.spec().id == id) return entry.spec();
  }
  return UnknownEnv(id);
}

absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id, const LatencyOptions& latency) {
  for (const Entry& entry : kEntries) {
    if (entry.spec().id == id) return entry.make(latency);
  }
  return UnknownEnv(id);
}

std::string MujocoVersion() { return MujocoLibraryVersion(); }

}  // namespace skein
