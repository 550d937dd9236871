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

// Records what work enqueues on a device, to enqueue the same again without the work's host code. Not thread-safe.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Does `work` the way it will be recorded, so that what is made once is made before.
  virtual void WarmUp(const std::function<void()>& work) = 0;
  // Records `work`, whose kernels do not run now, in place of what was recorded before. Throws what `work` throws and
  // where it cannot be recorded; then nothing is recorded.
  virtual void Record(const std::function<void()>& work) = 0;
  // Enqueues what was recorded, on the memory that it was recorded with. Throws.
  virtual void Replay() = 0;
  virtual void Forget() = 0;
};

// By a CUDA graph. Null in builds for a Torch without CUDA.
std::unique_ptr<Recorder> MakeCudaRecorder(torch::Device device);

// Why updates with these settings cannot be recorded, for a log line; empty if they can.
std::string WhyNotRecorded(const v1::LearnerConfig& config, bool several_ranks, torch::Device device);

// A gradient step of fixed shape, recorded once and replayed for each minibatch.   index -> Run -> optimizer
// The first few steps of a shape warm up and count like any other. Not thread-safe.
class StepGraph {
 public:
  // What a step reads: the same memory each time.
  struct Inputs {
    Minibatch samples;                     // [R]
    torch::Tensor index;                   // int64 [B], rows of the minibatch.
    torch::Tensor lr;                      // float64 []
    std::vector<torch::Tensor> scheduled;  // float32 [] each, Loss::scheduled().
  };
  // Enqueues one gradient step. Whatever changes from step to step must come from Inputs. When recorded, an exception
  // for lack of memory must pass through.
  using Step = std::function<absl::Status(const Inputs&, bool recorded)>;

  StepGraph(std::unique_ptr<Recorder> recorder, Step step);

  // Before the minibatches of an epoch: copies everything. Minibatches of `minibatch_size` rows will be recorded; if
  // that or the samples' shape is another than before, anew.
  void Load(const Minibatch& samples, int64_t minibatch_size, double lr, const std::vector<double>& scheduled);

  // One step on the rows int64 [B'] `index` of the loaded samples, on their device. False: nothing was done, because B'
  // is not the size that is recorded, or recording has failed, which is logged once. Errors are those of warming up.
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
