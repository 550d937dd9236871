// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/tasks/humanoid_body.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace skein {
namespace {

constexpr int kPositions = 24;
constexpr int kVelocities = 23;
constexpr int kMotors = 17;
constexpr int kFreeVelocities = 6;  // Of the torso, which no motor drives.
constexpr int kBodies = 14;
constexpr int kTendons = 2;

}  // namespace

HumanoidBody::Columns::Columns(MujocoArguments& arguments)
    : skipped(arguments.Flag("exclude_current_positions_from_observation", true) ? 2 : 0),
      cinert(arguments.Flag("include_cinert_in_observation", true)),
      cvel(arguments.Flag("include_cvel_in_observation", true)),
      qfrc_actuator(arguments.Flag("include_qfrc_actuator_in_observation", true)),
      cfrc_ext(arguments.Flag("include_cfrc_ext_in_observation", true)),
      bodies(arguments.model() != nullptr ? arguments.model()->bodies : kBodies) {}

int HumanoidBody::Columns::size() const {
  return kPositions - skipped + kVelocities + (cinert ? 10 * (bodies - 1) : 0) + (cvel ? 6 * (bodies - 1) : 0) +
         (qfrc_actuator ? kVelocities - kFreeVelocities : 0) + (cfrc_ext ? 6 * (bodies - 1) : 0);
}

MujocoTask::Facts HumanoidBody::Completed(const MujocoArguments& arguments, Facts facts, const Columns& columns) {
  facts.positions = kPositions;
  facts.velocities = kVelocities;
  facts.controls = kMotors;
  facts.counts.bodies = kBodies;
  facts.obs_size = columns.size();
  facts.velocity_columns = ColumnRange(kPositions - columns.skipped, kVelocities);
  if (columns.cvel) {
    const int first = kPositions - columns.skipped + kVelocities + (columns.cinert ? 10 * (columns.bodies - 1) : 0);
    const std::vector<int> of_bodies = ColumnRange(first, 6 * (columns.bodies - 1));
    facts.velocity_columns.insert(facts.velocity_columns.end(), of_bodies.begin(), of_bodies.end());
  }
  facts.action_bound = 0.4f;
  facts.frame_skip = 5;
  for (const MujocoArray array :
       {MujocoArray::kCinert, MujocoArray::kCvel, MujocoArray::kQfrcActuator, MujocoArray::kCfrcExt}) {
    facts.reads.push_back(array);
  }
  facts.info.last.insert(facts.info.last.begin(), {XPosition(), YPosition()});
  for (MujocoInfo& tendon : TendonInfo(arguments, kTendons)) facts.info.last.push_back(std::move(tendon));
  return facts;
}

HumanoidBody::HumanoidBody(MujocoArguments& arguments, Facts facts, const std::string& contact_prefix)
    : HumanoidBody(arguments, std::move(facts), contact_prefix, Columns(arguments)) {}

HumanoidBody::HumanoidBody(MujocoArguments& arguments, Facts facts, const std::string& contact_prefix,
                           const Columns& columns)
    : MujocoTask(Completed(arguments, std::move(facts), columns), arguments),
      columns_(columns),
      control_weight_(arguments.Number("ctrl_cost_weight", 0.1)),
      contact_weight_(arguments.Number(contact_prefix + "_cost_weight", 5e-7)),
      reset_noise_(arguments.NotNegative("reset_noise_scale", 1e-2)),
      contact_(arguments.Between(contact_prefix + "_cost_range", {-std::numeric_limits<double>::infinity(), 10})) {}

void HumanoidBody::Start(RandomStream& random, double* qpos, double* qvel) const {
  AddUniform(random, reset_noise_, kPositions, qpos);
  AddUniform(random, reset_noise_, kVelocities, qvel);
}

void HumanoidBody::Observe(const MujocoView& view, float* obs) const {
  obs = Write(view.qpos + columns_.skipped, kPositions - columns_.skipped, obs);
  obs = Write(view.qvel, kVelocities, obs);
  if (columns_.cinert) obs = Write(view.cinert + 10, 10 * (view.bodies - 1), obs);
  if (columns_.cvel) obs = Write(view.cvel + 6, 6 * (view.bodies - 1), obs);
  if (columns_.qfrc_actuator) {
    obs = Write(view.qfrc_actuator + kFreeVelocities, kVelocities - kFreeVelocities, obs);
  }
  if (columns_.cfrc_ext) Write(view.cfrc_ext + 6, 6 * (view.bodies - 1), obs);
}

double HumanoidBody::ControlCost(const float* action) const { return control_weight_ * SumOfSquares(action, kMotors); }

double HumanoidBody::ContactCost(const MujocoView& view) const {
  return std::clamp(contact_weight_ * SumOfSquares(view.cfrc_ext, 6 * view.bodies), contact_[0], contact_[1]);
}

}  // namespace skein
