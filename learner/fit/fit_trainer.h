// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/fit/fit_engine.h"
#include "learner/fit/fit_progress.h"
#include "learner/optimize/flat_adam.h"
#include "learner/run/checkpoint.h"
#include "learner/sequence/batch_stream.h"
#include "learner/sequence/detection_choice.h"
#include "learner/sequence/net_layout.h"
#include "skein/v1/fit.pb.h"

namespace skein {

class Collective;

// Trains the model of a FitConfig.   SequenceBatch -> parts on ranks and threads -> sum in their order -> FlatAdam
// All ranks make the same calls with the same batches; each computes its share of the parts. Not thread-safe.
// Errors as Collective's; ResourceExhausted: no memory for the model or a single sequence; Internal: what Torch threw.
class FitTrainer {
 public:
  // `collective` (null: a single rank) must outlive this. `local_rank` selects the GPU if train.device is auto.
  // InvalidArgument: train.parts is no multiple of the ranks. Others as ParseTrainingDevice.
  static absl::StatusOr<std::unique_ptr<FitTrainer>> Make(const v1::FitConfig& config, const Vocabulary& vocabulary,
                                                          Collective* collective, int local_rank);
  ~FitTrainer();

  // One step at learning rate `lr`. Counts into progress().
  absl::StatusOr<FitStep> Step(const SequenceBatch& batch, double lr, bool stops);
  // Mean loss of a key over the part of `store`; 0 if it has none. Every rank gets the same bits.
  absl::StatusOr<double> Loss(const SequenceStore& store, Part part);
  // Ends an epoch: updates early stopping, keeps the parameters if they are the best so far. Without a held-out part
  // the newest ones are the best.
  void EndEpoch(std::optional<double> held_out_loss);
  // With the best parameters: chooses the limits from the held-out part, on train.threads or all cores.
  absl::StatusOr<DetectionChoice> ChooseFinalLimits(const SequenceStore& store, const ChoiceProgress& progress);

  FitProgress& progress() { return progress_; }
  int64_t parameter_count() const;
  uint64_t out_of_memory() const;  // How often the micro-batch was halved by this rank.

  // `choice`: null before the end, and if none could be made. The vocabulary's names are in it, too.
  Checkpoint Save(const std::string& data_digest, const DetectionChoice* choice) const;
  // DataLoss: tensors are missing or have other shapes. FailedPrecondition: other data than `data_digest`, or other
  // settings that decide which sequences are used when, or what the parameters are.
  absl::Status Restore(const Checkpoint& checkpoint, const std::string& data_digest);

 private:
  FitTrainer(const v1::FitConfig& config, const Vocabulary& vocabulary, Collective* collective);
  bool IsFinished() const;
  // Of all ranks, in order of rank. Every rank passes as many.
  absl::StatusOr<std::vector<double>> GatherNumbers(const std::vector<double>& mine) const;
  PartRange OwnParts() const { return {rank_ * own_parts_, (rank_ + 1) * own_parts_}; }

  const v1::FitConfig config_;
  const Vocabulary& vocabulary_;
  const NetLayout layout_;
  Collective* const collective_;
  uint32_t rank_ = 0, ranks_ = 1, own_parts_ = 1;
  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<FlatAdam> adam_;
  std::unique_ptr<FitEngine> engine_;
  torch::Tensor best_;  // [P]
  FitProgress progress_;
};

// The learning rate at a point of training, 0 .. 1.
double LearningRate(const v1::FitTrainConfig& train, double done);

}  // namespace skein
