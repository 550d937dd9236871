// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "env/mujoco/task.h"

// The common part of Humanoid-v5 and HumanoidStandup-v5: a person of 17 motors at 67 decisions a second, its starts,
// observations and costs.
// 24 positions: torso x, y, z, orientation (quaternion w, x, y, z); abdomen z, y, x; right hip x, z, y and knee; left
// hip x, z, y and knee; right shoulder 1, 2 and elbow; left shoulder 1, 2 and elbow. 23 velocities: 6 of the torso, 17
// of the joints. Motors: abdomen y, z, x, then as the joints.
// obs: the positions (without x and y by default), the velocities, and by default of each body but the world 10 numbers
// of its inertia and 6 of its velocity, the motors' forces on the joints, and of each body 6 of the contact forces on
// it.
namespace skein {

class HumanoidBody : public MujocoTask {
 public:
  void Start(RandomStream& random, double* qpos, double* qvel) const final;
  void Observe(const MujocoView& view, float* obs) const final;

 protected:
  // `facts`: id, summary, model, reward terms, camera, what is read besides what is observed, and what `info` has
  // besides places along x and y and tendons; the rest is added.
  // The arguments of the cost of contact forces begin with `contact_prefix`.
  HumanoidBody(MujocoArguments& arguments, Facts facts, const std::string& contact_prefix);

  double ControlCost(const float* action) const;
  double ContactCost(const MujocoView& view) const;

 private:
  struct Columns {
    explicit Columns(MujocoArguments& arguments);
    int size() const;
    const int skipped;  // Of the positions.
    const bool cinert, cvel, qfrc_actuator, cfrc_ext;
    const int bodies;
  };

  HumanoidBody(MujocoArguments& arguments, Facts facts, const std::string& contact_prefix, const Columns& columns);
  static Facts Completed(const MujocoArguments& arguments, Facts facts, const Columns& columns);

  const Columns columns_;
  const double control_weight_, contact_weight_, reset_noise_;
  const MujocoArguments::Range contact_;
};

}  // namespace skein
