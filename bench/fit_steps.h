// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "learner/sequence/key_names.h"
#include "learner/sequence/sequence_batch.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// The gradient steps of `skein fit`: FitTrainer of a single rank, without Torch in the header. Not thread-safe.
class FitSteps {
 public:
  // `vocabulary` must outlive this. Errors as FitTrainer::Make.
  static absl::StatusOr<std::unique_ptr<FitSteps>> Make(const v1::FitConfig& config, const Vocabulary& vocabulary);
  ~FitSteps();

  // One step at train.lr. Returns the mean loss of a key before it. Errors as FitTrainer::Step.
  absl::StatusOr<double> Step(const SequenceBatch& batch);
  int64_t parameter_count() const;
  uint64_t out_of_memory() const;  // How often the micro-batch was halved so far.

 private:
  struct Impl;
  explicit FitSteps(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
