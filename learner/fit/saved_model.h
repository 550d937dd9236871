// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/fit/fit_progress.h"
#include "learner/network/tensor_codec.h"
#include "learner/run/checkpoint.h"
#include "learner/sequence/anomaly.h"
#include "learner/sequence/detection_choice.h"
#include "learner/sequence/key_names.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// The contents of a sequence model's checkpoint beside its newest parameters and the optimizer's state.
struct SavedModel {
  v1::FitConfig config;
  Vocabulary vocabulary;
  std::string data_digest;
  FitProgress progress;
  std::vector<float> parameters;  // The best ones.
  Limits limits;                  // For all sequences, by the model alone; their rule is not set.
  bool has_limits = false;  // Only at the end of a training that held sequences out, or whose settings have a limit.
  // Only then, and with detect.known_counts: the count vectors of its data, and the limits of sequences with others.
  std::optional<KnownCounts> known_counts;
  Limits other_limits;

  // Those by which `config` judges.
  Limits chosen_limits() const;
};
// FailedPrecondition: it is a policy's. DataLoss: tensors are missing or have other shapes.
absl::StatusOr<SavedModel> ReadSavedModel(const Checkpoint& checkpoint, const std::string& path);

// Checkpoint::state of it. `choice`: null before the end, and if none could be made.
NamedTensors SavedModelState(const FitProgress& progress, const torch::Tensor& best, const Vocabulary& vocabulary,
                             const std::string& data_digest, const DetectionChoice* choice);

// The tensor of that name, type and size (negative: any); nullptr: there is none.
const torch::Tensor* FindTensor(const NamedTensors& tensors, const std::string& name, torch::ScalarType type,
                                int64_t size);
// DataLoss for a checkpoint without it.
absl::Status MissingTensor(const std::string& name);

}  // namespace skein
