// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/optimize/minibatch.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Records the kernels that a function enqueues on a device and replays them without its host code. Not thread-safe.
class Recorder {
 public:
  // So often work is to be warmed up: libraries choose algorithms and take their workspaces in the first, the allocator
  // settles in the others.
  static constexpr int kWarmUps = 3;

  virtual ~Recorder() = default;
  // Runs `work` in the way that it will be recorded, so that one-time initialisation happens before the recording.
  virtual void WarmUp(const std::function<void()>& work) = 0;
  // Records `work` in place of the previous recording; its kernels do not run now. Throws what `work` throws, and also
  // if `work` cannot be recorded; then there is no recording.
  virtual void Record(const std::function<void()>& work) = 0;
  // Enqueues the recorded kernels, which read and write the same memory as when they were recorded. Throws.
  virtual void Replay() = 0;
  virtual void Forget() = 0;
};

// Records by a CUDA graph. Null in builds for a Torch without CUDA.
std::unique_ptr<Recorder> MakeCudaRecorder(torch::Device device);

// Why updates with these settings cannot be recorded, for a log line; empty if they can.
std::string WhyNotRecorded(const v1::LearnerConfig& config, bool several_ranks, torch::Device device);

// A gradient step of fixed shape, recorded once and replayed for each minibatch.   index -> Run -> optimizer
// The first few steps of a shape are warm-up steps; they train like all others. Not thread-safe.
class StepGraph {
 public:
  // Inputs of a step. Every step reads them from the same memory.
  struct Inputs {
    Minibatch samples;                     // [R]
    torch::Tensor index;                   // int64 [B], rows of the minibatch.
    torch::Tensor lr;                      // float64 []
    std::vector<torch::Tensor> scheduled;  // float32 [] each, Loss::scheduled().
  };
  // Enqueues one gradient step. Every value that changes between steps must come from Inputs. If `recorded`, an
  // exception for lack of memory must pass through.
  using Step = std::function<absl::Status(const Inputs&, bool recorded)>;

  StepGraph(std::unique_ptr<Recorder> recorder, Step step);

  // Copies the inputs; called before the minibatches of an epoch. Minibatches of `minibatch_size` rows are recorded. If
  // that size or the shape of the samples has changed, the old recording is dropped.
  void Load(const Minibatch& samples, int64_t minibatch_size, double lr, const std::vector<double>& scheduled);

  // One step on the rows int64 [B'] `index` of the loaded samples, on their device. False: nothing was done, because B'
  // differs from `minibatch_size`, or because recording has failed (logged once). Errors as Step's in warm-up steps.
  absl::StatusOr<bool> Run(const torch::Tensor& index);

  bool recorded() const { return recorded_; }

 private:
  bool Fits(const Minibatch& samples, int64_t minibatch_size) const;
  void WorkRecorded();

  std::unique_ptr<Recorder> recorder_;  // Null: recording has failed.
  const Step step_;
  Inputs inputs_;
  int warm_ups_ = 0;
  bool recorded_ = false;
};

}  // namespace skein
