// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/telemetry/rare_log.h"
#include "learner/algorithm/algorithm.h"
#include "learner/network/actor_critic.h"
#include "learner/network/normalizer.h"
#include "policy/direction.h"
#include "skein/v1/config.pb.h"

// The base class of searches over directions, and the returns that they read.
namespace skein {

// The returns of one direction: means over its episodes, with reward_shift taken off each step.
struct DirectionReturn {
  uint64_t index = 0;
  double plus = 0, minus = 0;
};

// Base class of algorithms that search over directions. It has the policy and the observation normaliser, and
// implements all of Algorithm; the derived class turns returns into a step of the parameters.
//   returns of N directions -> drop what is not finite -> Step -> parameters; observations -> normaliser
// Directions are made again from (seed, iteration, index). All sums are taken in the order of indices, so that results
// do not depend on which actor played what. A direction of which a return is not finite is dropped, counted and logged;
// the second iteration in a row without any other direction is an error, the first changes no parameter. One rank only;
// computes on the CPU and on the calling thread.
class DirectionSearch : public Algorithm {
 public:
  void SetSettings(const v1::RunConfig& config) final { config_ = config; }
  // Reads of `batch`, all on the CPU: return_plus, return_minus, float64 [N], sums over a direction's episodes;
  // steps_plus, steps_minus, int64 [N]; and, where observations are normalised, obs_sum and obs_square_sum, the words
  // of ExactMoments, int64 [rows, 2 O], and obs_count, int64 [], of how many observations: undefined = one for each
  // step of the directions of which both sums of returns are finite. FailedPrecondition: no direction of two iterations
  // in a row has finite returns.
  absl::StatusOr<UpdateStats> Update(const Batch& batch, double progress, uint64_t iteration) final;
  v1::PolicySnapshot Snapshot(uint64_t version) const final;
  Acting acting() const final;
  StateTensors ModelState() const final;
  StateTensors OptimizerState() const final;
  absl::Status Restore(const StateTensors& model, const StateTensors& optimizer) final;
  absl::Status Synchronize() final { return absl::OkStatus(); }
  uint64_t ParametersDigest() const final;
  const GradientReducer* reducer() const final { return nullptr; }

  // The searched parameters one after the other, in the order of a direction's elements.
  std::vector<double> Parameters() const;

 protected:
  // REQUIRES: `config` has every field set and is validated. A policy without hidden layers begins with all parameters
  // zero, as Mania et al. do.
  DirectionSearch(const v1::RunConfig& config, const ActorCriticOptions& network);

  // Changes `parameters` by the returns of those directions that have finite ones, ascending by index and at least one.
  virtual void Step(absl::Span<const DirectionReturn> returns, double progress, uint64_t iteration,
                    absl::Span<double> parameters, UpdateStats* stats) = 0;
  // The derived class's own state, for checkpoints; shapes and names are stable.
  virtual StateTensors StepState() const { return {}; }
  virtual void RestoreStep(const StateTensors& state) { (void)state; }

  // sum += weight * direction, element by element.
  void AddDirection(uint64_t iteration, uint64_t index, double weight, absl::Span<double> sum) const;
  const v1::RunConfig& config() const { return config_; }
  size_t size() const;  // Of a direction.

 private:
  void SetParameters(absl::Span<const double> parameters);
  void CountObservations(const Batch& batch);

  v1::RunConfig config_;
  const std::shared_ptr<ActorCritic> network_;
  std::vector<torch::Tensor> searched_;  // Of network_'s parameters, those that directions move.
  RunningMoments moments_;
  int64_t barren_ = 0;  // Successive iterations without a finite return.
  RareLog drops_;
};

}  // namespace skein
