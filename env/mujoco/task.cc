// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/task.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace skein {

using TaskMaker = std::unique_ptr<const MujocoTask>(MujocoArguments& arguments);

// One line here and one in Makers() for each file of env/mujoco/tasks.
TaskMaker MakeAnt, MakeHalfCheetah, MakeHopper, MakeHumanoid, MakeHumanoidStandup, MakeInvertedDoublePendulum,
    MakeInvertedPendulum, MakePusher, MakeQuadrupedStand, MakeReacher, MakeSwimmer, MakeWalker2d;

namespace {

struct Maker {
  const char* id;
  TaskMaker* make;
};

constexpr Maker kMakers[] = {
    {"Ant-v5", MakeAnt},
    {"HalfCheetah-v5", MakeHalfCheetah},
    {"Hopper-v5", MakeHopper},
    {"Humanoid-v5", MakeHumanoid},
    {"HumanoidStandup-v5", MakeHumanoidStandup},
    {"InvertedDoublePendulum-v5", MakeInvertedDoublePendulum},
    {"InvertedPendulum-v5", MakeInvertedPendulum},
    {"Pusher-v5", MakePusher},
    {"QuadrupedStand-v0", MakeQuadrupedStand},
    {"Reacher-v5", MakeReacher},
    {"Swimmer-v5", MakeSwimmer},
    {"Walker2d-v5", MakeWalker2d},
};

MujocoTask::Facts WithArguments(MujocoTask::Facts facts, MujocoArguments& arguments) {
  facts.frame_skip = static_cast<int>(arguments.Number("frame_skip", facts.frame_skip));
  arguments.Text("xml_file", "");  // Both looked at already: MujocoArguments::model().
  arguments.Text("xml_digest", "");
  if (const MujocoModelFacts* const model = arguments.model()) {
    facts.counts.bodies = model->bodies;
    facts.total_mass = 0;
  }
  return facts;
}

EnvSpec MakeSpec(const MujocoTask& task, const MujocoArguments& arguments) {
  const MujocoTask::Facts& facts = task.facts();
  int state_size =
      1 + facts.positions + 2 * facts.velocities + facts.episode_columns + static_cast<int>(facts.reward_terms.size());
  for (const MujocoArray array : facts.reads) state_size += task.ReadSize(array);
  std::vector<std::string> metrics = facts.reward_terms;
  if (facts.info.x_velocity) {
    metrics.push_back("x_velocity");
    ++state_size;
  }
  for (const MujocoInfo& info : facts.info.last) metrics.push_back(info.name);
  EnvSpec spec = {.id = facts.id,
                  .obs_size = facts.obs_size,
                  .action_size = facts.controls,
                  .action_low = std::vector<float>(facts.controls, -facts.action_bound),
                  .action_high = std::vector<float>(facts.controls, facts.action_bound),
                  .clip_actions = arguments.clip_actions(),
                  .state_size = state_size,
                  .max_episode_steps = facts.max_episode_steps,
                  .reward_threshold = facts.reward_threshold,
                  .episode_metrics = std::move(metrics),
                  .velocity_columns = facts.velocity_columns};
  if (const MujocoModelFacts* const model = arguments.model()) {
    spec.action_low = model->action_low;
    spec.action_high = model->action_high;
  }
  return spec;
}

}  // namespace

MujocoTask::MujocoTask(Facts facts, MujocoArguments& arguments)
    : facts_(WithArguments(std::move(facts), arguments)),
      mjcf_(arguments.model() != nullptr ? arguments.model()->mjcf : std::string(facts_.mjcf)),
      spec_(MakeSpec(*this, arguments)) {}

int MujocoTask::ReadSize(MujocoArray array) const {
  switch (array) {
    case MujocoArray::kXpos:
    case MujocoArray::kXipos:
      return 3 * facts_.counts.bodies;
    case MujocoArray::kCinert:
      return 10 * facts_.counts.bodies;
    case MujocoArray::kCvel:
    case MujocoArray::kCfrcExt:
      return 6 * facts_.counts.bodies;
    case MujocoArray::kQfrcActuator:
    case MujocoArray::kQfrcConstraint:
      return facts_.velocities;
    case MujocoArray::kSiteXpos:
      return 3 * facts_.counts.sites;
  }
  return 0;
}

std::vector<std::string> MujocoTaskIds() {
  std::vector<std::string> ids;
  for (const Maker& maker : kMakers) ids.push_back(maker.id);
  return ids;
}

absl::StatusOr<std::shared_ptr<const MujocoTask>> MakeMujocoTask(const std::string& env_id,
                                                                 const MujocoOptions& options,
                                                                 const MujocoModelFacts* model) {
  const auto* const maker =
      std::find_if(std::begin(kMakers), std::end(kMakers), [&](const Maker& one) { return one.id == env_id; });
  if (maker == std::end(kMakers)) return absl::NotFoundError(absl::StrCat(env_id, " is not a MuJoCo environment"));
  MujocoArguments arguments(options);
  if (model != nullptr) arguments.SetModel(*model);
  std::shared_ptr<const MujocoTask> task = maker->make(arguments);
  if (absl::Status status = arguments.Problem(env_id); !status.ok()) return status;
  return task;
}

std::vector<int> ColumnRange(int first, int count) {
  std::vector<int> columns(count);
  std::iota(columns.begin(), columns.end(), first);
  return columns;
}

double SumOfSquares(const float* values, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) sum += double{values[i]} * values[i];
  return sum;
}

double SumOfSquares(const double* values, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) sum += values[i] * values[i];
  return sum;
}

void AddUniform(RandomStream& random, double scale, int size, double* values) {
  for (int i = 0; i < size; ++i) values[i] += random.Uniform(-scale, scale);
}

float* Write(const double* values, int size, float* out) {
  for (int i = 0; i < size; ++i) *out++ = static_cast<float>(values[i]);
  return out;
}

float* WriteClipped(const double* values, int size, double low, double high, float* out) {
  for (int i = 0; i < size; ++i) *out++ = static_cast<float>(std::clamp(values[i], low, high));
  return out;
}

}  // namespace skein
