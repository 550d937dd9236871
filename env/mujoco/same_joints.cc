// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/same_joints.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "env/mujoco/model.h"

namespace skein {
namespace {

constexpr double kLeastCosine = 0.7;

const char* TypeName(int type) {
  switch (type) {
    case mjJNT_FREE:
      return "free";
    case mjJNT_BALL:
      return "ball";
    case mjJNT_SLIDE:
      return "slide";
    default:
      return "hinge";
  }
}

std::string NameOf(const mjModel& model, mjtObj kind, int number) {
  const char* const name = mj_id2name(&model, kind, number);
  return name == nullptr ? absl::StrCat("number ", number) : absl::StrCat("'", name, "'");
}

// Of each joint in the initial pose, seen from the body at its root.
std::vector<std::array<mjtNum, 3>> Directions(const mjModel& model) {
  const OwnedData data(mj_makeData(&model));
  mj_kinematics(&model, data.get());
  std::vector<std::array<mjtNum, 3>> directions(model.njnt);
  for (int joint = 0; joint < model.njnt; ++joint) {
    const int root = model.body_rootid[model.jnt_bodyid[joint]];
    mju_mulMatTVec(directions[joint].data(), data->xmat + 9 * root, data->xaxis + 3 * joint, 3, 3);
  }
  return directions;
}

}  // namespace

std::string SizeDifference(const MujocoTask& task, const mjModel& model) {
  const MujocoTask::Facts& facts = task.facts();
  if (model.nq != facts.positions || model.nv != facts.velocities || model.nu != facts.controls || model.na != 0) {
    return absl::StrCat("the model of ", facts.id, " has ", model.nq, " positions, ", model.nv, " velocities, ",
                        model.nu, " controls and ", model.na, " activations; its task needs ", facts.positions, ", ",
                        facts.velocities, ", ", facts.controls, " and 0");
  }
  if (model.nsite < facts.counts.sites) {
    return absl::StrCat("the model of ", facts.id, " has ", model.nsite, " sites; its task needs ", facts.counts.sites);
  }
  return "";
}

std::string JointDifference(const mjModel& own, const mjModel& model) {
  if (own.njnt != model.njnt) return absl::StrCat(model.njnt, " joints; its task needs ", own.njnt);
  for (int joint = 0; joint < own.njnt; ++joint) {
    if (own.jnt_type[joint] == model.jnt_type[joint]) continue;
    return absl::StrCat("joint ", NameOf(model, mjOBJ_JOINT, joint), " is of type ", TypeName(model.jnt_type[joint]),
                        "; at its place the task has ", NameOf(own, mjOBJ_JOINT, joint), " of type ",
                        TypeName(own.jnt_type[joint]));
  }
  const auto theirs = Directions(model), ours = Directions(own);
  for (int joint = 0; joint < own.njnt; ++joint) {
    if (own.jnt_type[joint] != mjJNT_HINGE && own.jnt_type[joint] != mjJNT_SLIDE) continue;
    if (mju_dot3(theirs[joint].data(), ours[joint].data()) >= kLeastCosine) continue;
    return absl::StrCat("joint ", NameOf(model, mjOBJ_JOINT, joint), " has another direction than the task's ",
                        NameOf(own, mjOBJ_JOINT, joint), " at its place");
  }
  for (int motor = 0; motor < own.nu; ++motor) {
    if (own.actuator_trntype[motor] == model.actuator_trntype[motor] &&
        own.actuator_trnid[2 * motor] == model.actuator_trnid[2 * motor]) {
      continue;
    }
    return absl::StrCat("actuator ", NameOf(model, mjOBJ_ACTUATOR, motor), " does not drive joint ",
                        own.actuator_trnid[2 * motor], ", as the task's does");
  }
  return "";
}

}  // namespace skein
