// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/number/philox.h"
#include "env/env.h"

// What distinguishes MuJoCo environments: model, sizes, start, reward, termination and observation. MujocoEnv
// (mujoco_env.h) does the rest: it compiles the model, steps, saves and loads. BareLoop and OffscreenRenderer read the
// same task. This header needs no MuJoCo header, so that a build without MuJoCo has every task's sizes.
namespace skein {

// The part of the simulation that a task reads, named as in mjData. Valid until the next step.
struct MujocoView {
  const double* qpos;  // [positions]
  const double* qvel;  // [velocities]
};

// The result of one step.
struct MujocoOutcome {
  double reward = 0;
  bool terminated = false;
};

// The camera of rendered videos. x and y follow `track_body`.
struct MujocoCamera {
  std::string track_body;
  double height = 0.5;     // z of the point that it looks at, m.
  double distance = 4;     // m
  double elevation = -24;  // Degrees; low enough to keep the horizon out of view.
};

// A task: constant data and pure functions, shared by all its environments on any thread.
class MujocoTask {
 public:
  struct Facts {
    std::string id, summary;  // As in EnvInfo.
    absl::string_view mjcf;   // The model's text, which the program contains.
    int positions = 0;        // nq
    int velocities = 0;       // nv
    int controls = 0;         // nu, reals of an action
    int obs_size = 0;
    float action_bound = 1;                 // Actions are in [-action_bound, action_bound].
    int frame_skip = 1;                     // mj_step calls for each env step.
    int max_episode_steps = 1000;           // As in EnvSpec.
    double reward_threshold = 0;            // As in EnvSpec.
    double total_mass = 0;                  // kg, to which all masses are scaled; 0 = not scaled.
    std::vector<std::string> reward_terms;  // Names of the terms of Judge; their sums are the episode's metrics.
    MujocoCamera camera;
  };

  explicit MujocoTask(Facts facts);
  virtual ~MujocoTask() = default;
  const Facts& facts() const { return facts_; }
  // A saved state is time, qpos, qvel, qacc_warmstart and the sums of the reward terms so far.
  const EnvSpec& spec() const { return spec_; }

  // Begins an episode. `qpos` and `qvel` hold the model's initial pose, which this changes.
  virtual void Start(RandomStream& random, double* qpos, double* qvel) const = 0;
  // The point whose velocity over a step is passed to Judge, m.
  virtual std::array<double, 3> Place(const MujocoView& view) const { return {view.qpos[0], 0, 0}; }
  // The outcome of a step. velocity: of Place, m/s; action: [controls]; terms: [reward terms], written.
  virtual MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                              double* terms) const = 0;
  virtual void Observe(const MujocoView& view, float* obs) const = 0;  // [obs_size]

 private:
  const Facts facts_;
  const EnvSpec spec_;
};

// All tasks, in no particular order. They exist as long as the process.
std::vector<const MujocoTask*> MujocoTasks();

// Null: no MuJoCo environment has this id.
const MujocoTask* FindMujocoTask(const std::string& env_id);

}  // namespace skein
