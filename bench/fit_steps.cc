// SPDX-License-Identifier: Apache-2.0
#include "bench/fit_steps.h"

#include <torch/utils.h>

#include <utility>

#include "learner/fit/fit_trainer.h"

namespace skein {

struct FitSteps::Impl {
  double lr;
  std::unique_ptr<FitTrainer> trainer;
  int torch_threads;  // As the trainer has chosen them; somebody else may have changed them since.
};

FitSteps::FitSteps(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FitSteps::~FitSteps() = default;

absl::StatusOr<std::unique_ptr<FitSteps>> FitSteps::Make(const v1::FitConfig& config, const Vocabulary& vocabulary) {
  auto trainer = FitTrainer::Make(config, vocabulary, nullptr, 0);
  if (!trainer.ok()) return trainer.status();
  return std::unique_ptr<FitSteps>(
      new FitSteps(std::make_unique<Impl>(Impl{config.train().lr(), *std::move(trainer), at::get_num_threads()})));
}

absl::StatusOr<double> FitSteps::Step(const SequenceBatch& batch) {
  if (at::get_num_threads() != impl_->torch_threads) at::set_num_threads(impl_->torch_threads);
  const auto step = impl_->trainer->Step(batch, impl_->lr, false);
  if (!step.ok()) return step.status();
  return step->loss;
}

int64_t FitSteps::parameter_count() const { return impl_->trainer->parameter_count(); }
uint64_t FitSteps::out_of_memory() const { return impl_->trainer->out_of_memory(); }

}  // namespace skein
