// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/mujoco/task.h"

// What Humanoid-v5 and HumanoidStandup-v5 share: the joints and the columns of an observation.
// 24 positions: torso x, y, z, orientation (quaternion w, x, y, z); abdomen z, y, x; right hip x, z, y and knee; left
// hip x, z, y and knee; right shoulder 1, 2 and elbow; left shoulder 1, 2 and elbow. 23 velocities: 6 of the torso, 17
// of the joints. 17 motors: abdomen y, z, x, then as the joints.
namespace skein {

class HumanoidColumns {
 public:
  static constexpr int kPositions = 24;
  static constexpr int kVelocities = 23;
  static constexpr int kMotors = 17;
  static constexpr int kFreeVelocities = 6;  // Of the torso, which no motor drives.
  static constexpr int kBodies = 14;

  explicit HumanoidColumns(MujocoArguments& arguments)
      : skipped_(arguments.Flag("exclude_current_positions_from_observation", true) ? 2 : 0),
        cinert_(arguments.Flag("include_cinert_in_observation", true)),
        cvel_(arguments.Flag("include_cvel_in_observation", true)),
        qfrc_actuator_(arguments.Flag("include_qfrc_actuator_in_observation", true)),
        cfrc_ext_(arguments.Flag("include_cfrc_ext_in_observation", true)),
        bodies_(arguments.model() != nullptr ? arguments.model()->bodies : kBodies) {}

  int size() const {
    return kPositions - skipped_ + kVelocities + (cinert_ ? 10 * (bodies_ - 1) : 0) + (cvel_ ? 6 * (bodies_ - 1) : 0) +
           (qfrc_actuator_ ? kVelocities - kFreeVelocities : 0) + (cfrc_ext_ ? 6 * (bodies_ - 1) : 0);
  }

  // Of each body but the world: 10 numbers of its inertia, 6 of its velocity, 6 of the contact forces on it.
  void Write(const MujocoView& view, float* obs) const {
    obs = skein::Write(view.qpos + skipped_, kPositions - skipped_, obs);
    obs = skein::Write(view.qvel, kVelocities, obs);
    if (cinert_) obs = skein::Write(view.cinert + 10, 10 * (view.bodies - 1), obs);
    if (cvel_) obs = skein::Write(view.cvel + 6, 6 * (view.bodies - 1), obs);
    if (qfrc_actuator_) {
      obs = skein::Write(view.qfrc_actuator + kFreeVelocities, kVelocities - kFreeVelocities, obs);
    }
    if (cfrc_ext_) skein::Write(view.cfrc_ext + 6, 6 * (view.bodies - 1), obs);
  }

 private:
  const int skipped_;
  const bool cinert_, cvel_, qfrc_actuator_, cfrc_ext_;
  const int bodies_;
};

}  // namespace skein
