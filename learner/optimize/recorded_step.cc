// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/recorded_step.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <exception>
#include <string>
#include <utility>

#include "base/telemetry/log.h"

namespace skein {
namespace {

void PointTo(const std::vector<torch::Tensor>& values, const std::vector<torch::Tensor*>& places) {
  for (size_t i = 0; i < places.size(); ++i) *places[i] = values[i];
}

}  // namespace

RecordedStep::RecordedStep(std::unique_ptr<Recorder> recorder, std::function<void()> work, Tensors tensors)
    : recorder_(std::move(recorder)), work_(std::move(work)), tensors_(std::move(tensors)) {}

void RecordedStep::Run() {
  const torch::NoGradGuard no_grad;
  if (recorder_ == nullptr) return work_();
  if (warm_ups_ < Recorder::kWarmUps) {
    ++warm_ups_;
    return recorder_->WarmUp(work_);
  }
  try {
    if (recorded()) {
      CopyReplaced();
    } else {
      Record();
    }
  } catch (const std::exception& error) {
    const std::string what = error.what();
    spdlog::warn("going on without recorded steps, because recording one failed: {}", what.substr(0, what.find('\n')));
    recorder_.reset();
    places_.clear();
    return work_();
  }
  recorder_->Replay();
}

void RecordedStep::Forget() {
  places_.clear();
  warm_ups_ = 0;
  if (recorder_ != nullptr) recorder_->Forget();
}

void RecordedStep::Record() {
  std::vector<torch::Tensor> places;
  const std::vector<torch::Tensor*> before = tensors_();
  for (const torch::Tensor* tensor : before) places.push_back(*tensor);
  try {
    recorder_->Record([this, places] {
      work_();
      const std::vector<torch::Tensor*> after = tensors_();
      for (size_t i = 0; i < places.size(); ++i) {
        if (!after[i]->is_same(places[i])) torch::Tensor(places[i]).copy_(*after[i]);
      }
      PointTo(places, after);
    });
  } catch (...) {
    PointTo(places, tensors_());
    throw;
  }
  places_ = std::move(places);
}

void RecordedStep::CopyReplaced() {
  const std::vector<torch::Tensor*> tensors = tensors_();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->is_same(places_[i])) continue;
    TORCH_CHECK(tensors[i]->sizes() == places_[i].sizes() && tensors[i]->scalar_type() == places_[i].scalar_type(),
                "a tensor of a recorded step has changed its shape or type");
    places_[i].copy_(*tensors[i]);
    *tensors[i] = places_[i];
  }
}

}  // namespace skein
