// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/number/philox.h"
#include "env/env.h"
#include "env/mujoco/arguments.h"
#include "env/mujoco/info.h"

// The part of a MuJoCo environment that differs from task to task: model, sizes, start, reward, termination and
// observation. MujocoEnv (mujoco_env.h) does the rest: it compiles the model, steps, saves and loads. BareLoop and
// OffscreenRenderer read the same task. This header needs no MuJoCo header, so that a build without MuJoCo has every
// task's sizes.
namespace skein {

// The part of the simulation that a task reads, named as in mjData and mjModel. Valid until the next step. qpos and
// qvel are of the end of a step. Everything else is of the start of its last substep, since mj_step computes it there.
// Arrays of MujocoArray are null unless the task says in Facts::reads that it reads them; a saved state has them.
struct MujocoView {
  const double* qpos;             // [positions]
  const double* qvel;             // [velocities]
  const double* xpos;             // [bodies, 3], m.
  const double* xipos;            // [bodies, 3], centres of mass, m.
  const double* cinert;           // [bodies, 10]
  const double* cvel;             // [bodies, 6]
  const double* cfrc_ext;         // [bodies, 6], contact forces; mj_rnePostConstraint computes them after a step.
  const double* qfrc_actuator;    // [velocities]
  const double* qfrc_constraint;  // [velocities]
  const double* site_xpos;        // [sites, 3], m.
  const double* ten_length;       // [tendons], and
  const double* ten_velocity;     // never kept, 0 in a state that has just been loaded.
  const double* body_mass;        // [bodies], kg.
  const double* qpos0;            // [positions], the model's initial pose.
  int bodies;                     // With the world, which is the first.
  double timestep;                // Of the model, s.
  double* episode;   // [Facts::episode_columns], what the task keeps of the episode; the task may write it.
  const int* named;  // Of Facts::named_bodies.
};

// Arrays of a MujocoView besides qpos and qvel.
enum class MujocoArray { kXpos, kXipos, kCinert, kCvel, kCfrcExt, kQfrcActuator, kQfrcConstraint, kSiteXpos };

// The result of one step.
struct MujocoOutcome {
  double reward = 0;
  bool terminated = false;
};

// The camera of rendered videos. x and y follow `track_body`.
struct MujocoCamera {
  std::string track_body;  // The second body of the model, if it has none of this name.
  double height = 0.5;     // z of the point that it looks at, m.
  double distance = 4;     // m
  double elevation = -24;  // Degrees; low enough to keep the horizon out of view.
};

// A task: constant data and pure functions, shared by all its environments on any thread.
class MujocoTask {
 public:
  struct Facts {
    std::string id, summary;  // As in EnvInfo.
    absl::string_view mjcf;   // The task's own model, which the program contains.
    int positions = 0;        // nq
    int velocities = 0;       // nv
    int controls = 0;         // nu, reals of an action
    struct Counts {
      int bodies = 0;  // nbody, with the world; only needed by tasks that read arrays of bodies.
      int sites = 0;   // nsite; only needed by tasks that read site_xpos.
    } counts;
    int obs_size = 0;                   // With all columns that the arguments ask for.
    std::vector<int> velocity_columns;  // As in EnvSpec.
    float action_bound = 1;             // Actions are in [-action_bound, action_bound].
    int frame_skip = 1;                 // mj_step calls for each env step, by default.
    int max_episode_steps = 1000;       // As in EnvSpec.
    double reward_threshold = 0;        // As in EnvSpec.
    double total_mass = 0;              // kg, to which all masses of the task's own model are scaled; 0 = not scaled.
    int episode_columns = 0;            // Doubles that the task keeps of an episode; part of a saved state.
    std::vector<MujocoArray> reads;
    std::vector<std::string> named_bodies;  // Bodies that the task looks up: names, or numbers in digits.
    std::vector<std::string> reward_terms;  // Names of the terms of Judge; their sums are the episode's metrics.
    // Further metrics of an episode.
    struct Info {
      bool x_velocity = false;       // Its mean.
      std::vector<MujocoInfo> last;  // The values at the end.
    } info;
    MujocoCamera camera;
  };

  virtual ~MujocoTask() = default;
  const Facts& facts() const { return facts_; }
  // The text of the model: the user's (env.mujoco.xml_file) or the task's own.
  const std::string& mjcf() const { return mjcf_; }
  // A saved state is time, qpos, qvel, qacc_warmstart, the arrays of Facts::reads in their order, the columns of the
  // episode, the sums of the reward terms so far, and with info.x_velocity the sum of the x-velocities.
  const EnvSpec& spec() const { return spec_; }
  int ReadSize(MujocoArray array) const;  // Doubles of one of Facts::reads.

  // Begins an episode. `qpos` and `qvel` hold the model's initial pose, which this changes.
  virtual void Start(RandomStream& random, double* qpos, double* qvel) const = 0;
  // After Start, with the rest of the same random numbers. `episode` is MujocoView::episode, all 0.
  virtual void StartEpisode(RandomStream& random, double* episode) const { (void)random, (void)episode; }
  // Before the first substep of each step: may change the velocities.
  virtual void Disturb(const MujocoView& view, double* qvel) const { (void)view, (void)qvel; }
  // The point whose velocity over a step is passed to Judge, m.
  virtual std::array<double, 3> Place(const MujocoView& view) const { return {view.qpos[0], 0, 0}; }
  // The outcome of a step. velocity: of Place, m/s; action: [controls]; terms: [reward terms], written.
  virtual MujocoOutcome Judge(const MujocoView& view, const std::array<double, 3>& velocity, const float* action,
                              double* terms) const = 0;
  virtual void Observe(const MujocoView& view, float* obs) const = 0;  // [obs_size]

 protected:
  // Also reads the arguments that all tasks have: frame_skip, xml_file.
  MujocoTask(Facts facts, MujocoArguments& arguments);

 private:
  const Facts facts_;
  const std::string mjcf_;
  const EnvSpec spec_;
};

// Ids of all tasks, in no particular order.
std::vector<std::string> MujocoTaskIds();

// The task with these arguments. NotFound: no MuJoCo environment has this id. InvalidArgument: an argument that it does
// not have, or a value that cannot be. `model`: facts of the user's model, or null.
absl::StatusOr<std::shared_ptr<const MujocoTask>> MakeMujocoTask(const std::string& env_id,
                                                                 const MujocoOptions& options = {},
                                                                 const MujocoModelFacts* model = nullptr);

// Building blocks of tasks.

// first, first + 1, ...: `count` columns.
std::vector<int> ColumnRange(int first, int count);

// The sum of the squares of `size` values.
double SumOfSquares(const float* values, int size);
double SumOfSquares(const double* values, int size);
// Adds Uniform(-scale, scale) to each of `size` values.
void AddUniform(RandomStream& random, double scale, int size, double* values);
// Write `size` values as float32, WriteClipped each clipped to [low, high]; return the end of what was written.
float* Write(const double* values, int size, float* out);
float* WriteClipped(const double* values, int size, double low, double high, float* out);

}  // namespace skein
