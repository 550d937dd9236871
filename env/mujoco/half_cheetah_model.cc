// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/half_cheetah_model.h"

#include "absl/strings/substitute.h"

namespace skein {
namespace {

constexpr double kTotalMass = 14;  // kg

// Only attributes that MuJoCo 2.2 to 4.0 all read without complaint. All limbs are capsules of radius 4.6 cm in the
// x-z plane, their masses in the proportion of their volumes. They touch the ground but not each other.
// $0: contype of all, $1: conaffinity of the ground; $2: pairs that touch whatever these say.
constexpr char kMjcf[] = R"(
<mujoco model="half_cheetah">
  <compiler angle="radian" inertiafromgeom="true"/>
  <option timestep="0.01" gravity="0 0 -9.81"/>

  <default>
    <geom type="capsule" condim="3" contype="$0" conaffinity="0" friction="0.4 0.1 0.1" solref="0.02 1"
          solimp="0 0.8 0.01"/>
    <default class="free">
      <joint axis="0 1 0" limited="false" armature="0" damping="0" stiffness="0" solreflimit="0.02 1"
             solimplimit="0 0.8 0.03"/>
    </default>
    <default class="leg">
      <joint type="hinge" axis="0 1 0" limited="true" armature="0.1" solreflimit="0.02 1" solimplimit="0 0.8 0.03"/>
    </default>
    <default class="touch">
      <pair condim="3" friction="0.4 0.4 0.1 0.1 0.1" solref="0.02 1" solimp="0 0.8 0.01"/>
    </default>
    <motor ctrllimited="true" ctrlrange="-1 1"/>
  </default>

  <worldbody>
    <geom name="ground" type="plane" size="40 40 40" conaffinity="$1"/>

    <body name="trunk" pos="0 0 0.7">
      <joint name="trunk_x" class="free" type="slide" axis="1 0 0"/>
      <joint name="trunk_z" class="free" type="slide" axis="0 0 1"/>
      <joint name="trunk_pitch" class="free" type="hinge"/>
      <geom name="spine" fromto="-0.5 0 0  0.5 0 0" size="0.046"/>
      <geom name="head" pos="0.6 0 0.1" euler="0 0.87 0" size="0.046 0.15"/>

      <body name="back_thigh" pos="-0.5 0 0">
        <joint name="back_hip" class="leg" range="-0.52 1.05" stiffness="240" damping="6"/>
        <geom name="back_thigh" pos="0.1 0 -0.13" euler="0 -3.8 0" size="0.046 0.145"/>
        <body name="back_shin" pos="0.16 0 -0.25">
          <joint name="back_knee" class="leg" range="-0.785 0.785" stiffness="180" damping="4.5"/>
          <geom name="back_shin" pos="-0.14 0 -0.07" euler="0 -2.03 0" size="0.046 0.15"/>
          <body name="back_foot" pos="-0.28 0 -0.14">
            <joint name="back_ankle" class="leg" range="-0.4 0.785" stiffness="120" damping="3"/>
            <geom name="back_foot" pos="0.03 0 -0.097" euler="0 -0.27 0" size="0.046 0.094"/>
          </body>
        </body>
      </body>

      <body name="front_thigh" pos="0.5 0 0">
        <joint name="front_hip" class="leg" range="-1 0.7" stiffness="180" damping="4.5"/>
        <geom name="front_thigh" pos="-0.07 0 -0.12" euler="0 0.52 0" size="0.046 0.133"/>
        <body name="front_shin" pos="-0.14 0 -0.24">
          <joint name="front_knee" class="leg" range="-1.2 0.87" stiffness="120" damping="3"/>
          <geom name="front_shin" pos="0.065 0 -0.09" euler="0 -0.6 0" size="0.046 0.106"/>
          <body name="front_foot" pos="0.13 0 -0.18">
            <joint name="front_ankle" class="leg" range="-0.5 0.5" stiffness="60" damping="1.5"/>
            <geom name="front_foot" pos="0.045 0 -0.07" euler="0 -0.6 0" size="0.046 0.07"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>

$2
  <actuator>
    <motor joint="back_hip" gear="120"/>
    <motor joint="back_knee" gear="90"/>
    <motor joint="back_ankle" gear="60"/>
    <motor joint="front_hip" gear="120"/>
    <motor joint="front_knee" gear="60"/>
    <motor joint="front_ankle" gear="30"/>
  </actuator>
</mujoco>
)";

// Each limb with the ground, in the order in which a search finds them, with what the geoms have in common.
constexpr char kPairs[] = R"(
  <contact>
    <pair class="touch" geom1="ground" geom2="spine"/>
    <pair class="touch" geom1="ground" geom2="head"/>
    <pair class="touch" geom1="ground" geom2="back_thigh"/>
    <pair class="touch" geom1="ground" geom2="back_shin"/>
    <pair class="touch" geom1="ground" geom2="back_foot"/>
    <pair class="touch" geom1="ground" geom2="front_thigh"/>
    <pair class="touch" geom1="ground" geom2="front_shin"/>
    <pair class="touch" geom1="ground" geom2="front_foot"/>
  </contact>
)";

absl::StatusOr<SharedModel> Compile(const std::string& mjcf) {
  return CompileModel("HalfCheetah-v5", mjcf, kTotalMass);
}

}  // namespace

const absl::StatusOr<SharedModel>& PublishedHalfCheetahModel() {
  static const absl::StatusOr<SharedModel> model = Compile(absl::Substitute(kMjcf, 1, 1, ""));
  return model;
}

const absl::StatusOr<SharedModel>& HalfCheetahModel() {
  static const absl::StatusOr<SharedModel> model = Compile(absl::Substitute(kMjcf, 0, 0, kPairs));
  return model;
}

}  // namespace skein
