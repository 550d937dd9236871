// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/config/direction_rules.h"
#include "env/env.h"
#include "env/tensor/tensor_env.h"
#include "learner/network/actor_critic.h"
#include "learner/network/exact_product.h"
#include "learner/network/normalizer.h"
#include "learner/network/tensor_moments.h"
#include "learner/optimize/batch.h"
#include "learner/optimize/memory_limit.h"
#include "learner/optimize/recorded_step.h"
#include "policy/activation.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Plays a search's directions on the learner's device, without actors (mode on_device).
//   policy -> perturbed for each direction and sign -> batched products x TensorEnv, whole episodes -> returns -> Batch
// A direction is the same vector as on actors, and its episodes are those of the same environments. All of
// directions.dir_chunk directions, both signs and directions.num_envs worlds of each are stepped at once. Where memory
// does not suffice, it is half as many, for good. How many changes no bit: products are exact (exact_product.h), all
// else is computed for each world on its own, and sums are taken on the host in the order of directions. Not
// thread-safe. Torch's exceptions are not caught, but those for lack of memory.
class DirectionRollout {
 public:
  struct Iteration {
    Batch batch;             // The fields that DirectionSearch::Update reads, on the CPU.
    uint64_t env_steps = 0;  // Of all episodes,
    int64_t samples = 0;     // and of the agents that were alive.
    // Of all directions, first plus, then minus: [2 * num_dirs * num_envs].
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
    v1::StageSeconds stage_seconds;  // As DeviceRollout::Iteration.
  };

  // Errors as MakeTensorEnv and MostEpisodeSteps. REQUIRES: `config` is validated and searches over directions.
  static absl::StatusOr<std::unique_ptr<DirectionRollout>> Make(const v1::RunConfig& config, torch::Device device);

  // Plays iteration `iteration` < 2^32. ResourceExhausted: out of memory with a single direction. Others as
  // MakeTensorEnv.
  absl::StatusOr<Iteration> Collect(const ActorCritic& network, const ObsScale& obs_scale, uint64_t iteration,
                                    const DirectionSettings& settings);

  // How often directions were halved for lack of memory.
  int64_t out_of_memory() const { return memory_.out_of_memory(); }
  int64_t dir_chunk() const { return memory_.samples(); }  // 0 = all.
  // For tests: see MemoryLimit::SetProbe, of numbers of directions.
  void SetProbe(std::function<void(int64_t)> probe) { memory_.SetProbe(std::move(probe)); }
  // For tests: makes the recorder of steps, otherwise that of a GPU.
  void SetRecorder(std::function<std::unique_ptr<Recorder>()> make) { make_recorder_ = std::move(make); }

 private:
  // A layer of 2 C perturbed policies. weight [2 C, outputs, inputs]; bias float64 [2 C, 1, outputs].
  struct Layer {
    ExactRows weight;
    torch::Tensor bias;
  };
  // Episodes that are being played, of E environments in all.
  struct Episodes {
    std::vector<Layer> layers;
    ObsScale scale;
    torch::Tensor obs;                       // float32 [E, A, O]
    torch::Tensor going_on;                  // bool [E]
    torch::Tensor episode_return;            // float64 [E]
    torch::Tensor length;                    // int64 [E]
    torch::Tensor samples;                   // int64 [E], of agents that were alive
    std::unique_ptr<TensorMoments> moments;  // Of each direction, first plus, then minus.
  };
  // Host time of the steps so far. Replayed steps add nothing: their time counts as `wait`.
  struct StepSeconds {
    absl::Duration env_step, inference, build, last;
  };
  // Returns and lengths of the episodes of all directions, [num_dirs * num_envs], for one sign.
  struct Sign {
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
  };

  DirectionRollout(const v1::RunConfig& config, const EnvSpec& spec, uint32_t most_steps, torch::Device device);
  absl::Status Play(const ActorCritic& network, const ObsScale& scale, uint64_t iteration,
                    const DirectionSettings& settings, int64_t first, int64_t count, v1::StageSeconds* seconds);
  // The environments of `count` directions from `first` on, for both signs.
  absl::StatusOr<TensorEnv*> EnvsOf(int64_t first, int64_t count);
  std::vector<Layer> Perturb(const ActorCritic& network, uint64_t iteration, double noise_std, int64_t first,
                             int64_t count) const;
  // Actions as TensorEnv::Advance takes them.
  torch::Tensor Act() const;
  // One step of all episodes.
  void Step();
  // Takes what the episodes of `count` directions from `first` on have given.
  void TakeEpisodes(int64_t first, int64_t count);
  // All that one step leaves to the next, and what changes from one iteration to the next.
  std::vector<torch::Tensor*> Tensors();
  Iteration Finish(v1::StageSeconds seconds) const;

  // Constant after construction.
  const v1::RunConfig config_;
  const EnvSpec spec_;
  const uint32_t most_steps_;  // Of an episode, in any phase.
  const int64_t dirs_, worlds_;
  const ActivationKind activation_;
  const torch::Device device_;

  MemoryLimit memory_;
  std::unique_ptr<TensorEnv> env_;
  int64_t env_first_ = 0, env_count_ = 0;  // The directions of env_.
  std::function<std::unique_ptr<Recorder>()> make_recorder_;
  std::unique_ptr<RecordedStep> step_;  // Of env_.
  Episodes episodes_;
  StepSeconds step_seconds_;
  // Of the iteration so far.
  Sign plus_, minus_;
  int64_t samples_ = 0;
  // Of directions with finite returns.
  TensorMoments moments_;
  int64_t counted_samples_ = 0;
};

}  // namespace skein
