// SPDX-License-Identifier: Apache-2.0
#include "env/registry.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/edit_distance.h"
#include "env/classic/cartpole.h"
#include "env/classic/mountain_car_continuous.h"
#include "env/classic/pendulum.h"
#include "env/external/external_envs.h"
#include "env/external/external_id.h"
#include "env/mujoco/library.h"
#include "env/mujoco/mujoco_env.h"
#include "env/synthetic/repeat_previous.h"
#include "env/synthetic/sticky_cartpole.h"
#include "env/uav/uav_baselines.h"
#include "env/uav/uav_env.h"

namespace skein {
namespace {

using Envs = std::vector<std::unique_ptr<Env>>;

struct Entry {
  std::string id;
  std::string summary;
  std::function<absl::StatusOr<EnvSpec>(const EnvOptions& options)> spec;
  std::function<absl::StatusOr<Envs>(const EnvOptions& options, int count)> make;
  bool tensor_form = false;
  EnvExtras extras = {};
  std::function<ScriptedPolicy(const EnvOptions& options)> greedy = {};
};

// `count` environments, each by make_one().
template <typename MakeOne>
absl::StatusOr<Envs> MakeEach(int count, const MakeOne& make_one) {
  Envs envs;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<std::unique_ptr<Env>> env = make_one();
    if (!env.ok()) return env.status();
    envs.push_back(*std::move(env));
  }
  return envs;
}

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
absl::StatusOr<Envs> Make(const EnvOptions&, int count) {
  return MakeEach(count, make);
}

absl::StatusOr<Envs> MakeLatencyEnvs(const EnvOptions& options, int count) {
  return MakeEach(count, [&] { return MakeLatency(options.latency); });
}

absl::StatusOr<EnvSpec> RepeatPreviousSpec(const EnvOptions& options) {
  return MakeRepeatPreviousSpec(options.repeat_previous);
}
absl::StatusOr<Envs> MakeRepeatPreviousEnvs(const EnvOptions& options, int count) {
  return MakeEach(count, [&] { return MakeRepeatPrevious(options.repeat_previous); });
}

template <UavTask task>
absl::StatusOr<Envs> MakeUavs(const EnvOptions& options, int count) {
  return MakeEach(count, [&] { return MakeUavEnv(task, options.uav); });
}

ScriptedPolicy GreedyFlight(const EnvOptions& options) {
  return [uav = options.uav](int agents, const float* obs, float* action) { FlyToTargets(uav, agents, obs, action); };
}

absl::StatusOr<EnvSpec> MujocoSpec(const std::string& id, const EnvOptions& options) {
  const auto task = FindMujocoTask(id, options.mujoco);
  if (!task.ok()) return task.status();
  return (*task)->spec();
}

// The task is found once: a user's model is read and compiled for that.
absl::StatusOr<Envs> MakeMujocos(const std::string& id, const EnvOptions& options, int count) {
  const auto task = FindMujocoTask(id, options.mujoco);
  if (!task.ok()) return task.status();
  return MakeEach(count, [&] { return MakeMujocoEnv(*task); });
}

std::vector<Entry> MakeEntries() {
  std::vector<Entry> entries = {
      {"CartPole-v1", "Balance a pole on a cart that is pushed left or right.", Spec<CartPoleSpec>, Make<MakeCartPole>,
       /*tensor_form=*/true},
      {"Latency-v0", "Follow an oscillation; sleeps instead of computing, for studies of waiting.", Spec<LatencySpec>,
       MakeLatencyEnvs},
      {"MountainCarContinuous-v0", "Rock a weak car out of a valley with little force.",
       Spec<MountainCarContinuousSpec>, Make<MakeMountainCarContinuous>},
      {"Pendulum-v1", "Swing a pendulum up and hold it with a weak motor.", Spec<PendulumSpec>, Make<MakePendulum>},
      {"RepeatPrevious-v0", "Name the symbol that was shown four steps before, a diagnosis of memories.",
       RepeatPreviousSpec, MakeRepeatPreviousEnvs},
      {"StickyCartPole-v0", "CartPole-v1 whose state cannot be saved, for studies of environments that cannot move.",
       Spec<StickyCartPoleSpec>, Make<MakeStickyCartPole>},
      {"UavCover-v0",
       "Visit the free cells of an arena with a team of UAVs.",
       UavSpec<UavTask::kCover>,
       MakeUavs<UavTask::kCover>,
       /*tensor_form=*/true,
       {.drawing = EnvDrawing::kMap}},
      {"UavNavigate-v0",
       "Fly a team of UAVs to their targets between obstacles.",
       UavSpec<UavTask::kNavigate>,
       MakeUavs<UavTask::kNavigate>,
       /*tensor_form=*/true,
       {.drawing = EnvDrawing::kMap},
       GreedyFlight},
  };
  for (const std::string& id : MujocoTaskIds()) {
    const std::string summary = (*MakeMujocoTask(id))->facts().summary;
    entries.push_back({id,
                       summary,
                       [id](const EnvOptions& options) { return MujocoSpec(id, options); },
                       [id](const EnvOptions& options, int count) { return MakeMujocos(id, options, count); },
                       /*tensor_form=*/false,
                       {.drawing = EnvDrawing::kScene, .physics = true, .motors_clip = true}});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return entries;
}

// Ordered by id.
const std::vector<Entry>& Entries() {
  static const auto* const entries = new std::vector<Entry>(MakeEntries());
  return *entries;
}

template <typename Predicate>
std::vector<std::string> IdsWhere(const Predicate& holds) {
  std::vector<std::string> ids;
  for (const Entry& entry : Entries()) {
    if (holds(entry)) ids.push_back(entry.id);
  }
  return ids;
}

// What other environments say to arguments of the MuJoCo environments.
absl::Status CheckOptions(const std::string& id, const EnvOptions& options) {
  if (options.mujoco.arguments.empty() || MakeMujocoTask(id).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("env.mujoco.", options.mujoco.arguments.begin()->first, ": ", id, " is not a MuJoCo environment"));
}

const Entry* FindEntry(const std::string& id) {
  for (const Entry& entry : Entries()) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

absl::Status UnknownEnv(const std::string& whole) {
  // An id is a few dozen letters: more would only make the search for the nearest one slow.
  const std::string id = whole.substr(0, 100);
  // With and without the version of the name.
  const auto distance = [lower = absl::AsciiStrToLower(id)](const Entry& entry) {
    const std::string name = absl::AsciiStrToLower(entry.id);
    return std::min(EditDistance(lower, name), EditDistance(lower, name.substr(0, name.rfind("-v"))));
  };
  const Entry& nearest = *std::min_element(Entries().begin(), Entries().end(),
                                           [&](const Entry& a, const Entry& b) { return distance(a) < distance(b); });
  const bool similar = 2 * distance(nearest) <= static_cast<int>(id.size());
  return absl::InvalidArgumentError(absl::StrCat("unknown environment '", id, "'; ",
                                                 similar ? absl::StrCat("did you mean '", nearest.id, "'? ") : "",
                                                 "`skein envs` lists all, docs/environments.md says how "
                                                 "to bring your own"));
}

// Without transforms.
absl::StatusOr<EnvSpec> FindPlainSpec(const std::string& id, const EnvOptions& options) {
  const bool external = IsExternalId(id);
  const Entry* const entry = FindEntry(id);
  if (entry == nullptr && !external) return UnknownEnv(id);
  if (absl::Status status = CheckOptions(id, options); !status.ok()) return status;
  return external ? FindExternalSpec(id, options.external) : entry->spec(options);
}

absl::StatusOr<Envs> MakePlainEnvs(const std::string& id, int count, const EnvOptions& options) {
  const bool external = IsExternalId(id);
  const Entry* const entry = FindEntry(id);
  if (entry == nullptr && !external) return UnknownEnv(id);
  if (absl::Status status = CheckOptions(id, options); !status.ok()) return status;
  return external ? MakeExternalEnvs(id, count, options.external) : entry->make(options, count);
}

}  // namespace

std::vector<EnvInfo> ListEnvs() {
  std::vector<EnvInfo> envs;
  for (const Entry& entry : Entries()) {
    envs.push_back({entry.id, entry.summary, entry.spec({}).value(), entry.tensor_form});
  }
  return envs;
}

absl::StatusOr<EnvSpec> FindEnvSpec(const std::string& id, const EnvOptions& options) {
  auto spec = FindPlainSpec(id, options);
  if (!spec.ok() || options.transforms.empty()) return spec;
  return TransformedSpec(*spec, options.transforms);
}

absl::StatusOr<std::vector<Transform>> FindTransforms(const std::string& id, const EnvOptions& options) {
  const auto spec = FindPlainSpec(id, options);
  if (!spec.ok()) return spec.status();
  return ResolveTransforms(*spec, options.transforms);
}

absl::StatusOr<std::string> FindModelDigest(const std::string& id, const EnvOptions& options) {
  return UserModelDigest(id, options.mujoco);
}

EnvExtras FindEnvExtras(const std::string& id) {
  const Entry* const entry = FindEntry(id);
  return entry == nullptr ? EnvExtras() : entry->extras;
}

absl::StatusOr<ScriptedPolicy> MakeGreedyPolicy(const std::string& id, const EnvOptions& options) {
  const Entry* const entry = FindEntry(id);
  if (entry == nullptr || !entry->greedy) {
    const auto those = IdsWhere([](const Entry& other) { return static_cast<bool>(other.greedy); });
    return absl::InvalidArgumentError(
        absl::StrCat(id, " has no greedy policy; of all environments only ", absl::StrJoin(those, ", "), " has one"));
  }
  if (const auto spec = entry->spec(options); !spec.ok()) return spec.status();
  return entry->greedy(options);
}

absl::Status CheckTensorForm(const std::string& id) {
  const Entry* const entry = FindEntry(id);
  if (entry == nullptr && !IsExternalId(id)) return UnknownEnv(id);
  if (entry != nullptr && entry->tensor_form) return absl::OkStatus();
  std::vector<std::string> those = IdsWhere([](const Entry& other) { return other.tensor_form; });
  const std::string last = those.back();
  those.pop_back();
  return absl::InvalidArgumentError(
      absl::StrCat("sync.mode on_device steps environments as tensors on the learner's device, and ", id,
                   " has no such form; ", absl::StrJoin(those, ", "), " and ", last, " have"));
}

absl::StatusOr<std::unique_ptr<Env>> MakeEnv(const std::string& id, const EnvOptions& options) {
  auto envs = MakeEnvs(id, 1, options);
  if (!envs.ok()) return envs.status();
  return std::move(envs->front());
}

absl::StatusOr<std::vector<std::unique_ptr<Env>>> MakeEnvs(const std::string& id, int count,
                                                           const EnvOptions& options) {
  auto envs = MakePlainEnvs(id, count, options);
  if (!envs.ok() || options.transforms.empty()) return envs;
  if (absl::Status status = WrapInTransforms(options.transforms, &*envs); !status.ok()) return status;
  return envs;
}

std::string MujocoVersion() { return MujocoLibraryVersion(); }

}  // namespace skein
