// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/gradient_reducer.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <utility>

#include "absl/time/clock.h"
#include "base/process/steady_wait.h"

namespace skein {
namespace {

constexpr double kBytesPerMegabyte = 1e6;

// Runs after a parameter's gradient has been accumulated.
class AfterAccumulation : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void()> then) : then_(std::move(then)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list& /*inputs*/) override {
    then_();
    return outputs;
  }

 private:
  const std::function<void()> then_;
};

}  // namespace

GradientReducer::GradientReducer(Collective* collective, torch::Tensor gradient,
                                 const std::vector<torch::Tensor>& parameters, const Options& options)
    : collective_(*collective), bf16_(options.bf16) {
  const auto bucket_size = static_cast<int64_t>(options.bucket_mb * kBytesPerMegabyte / sizeof(float));
  int64_t end = gradient.numel(), begin = end;
  size_t count = 0;
  const auto close_bucket = [&] {
    buckets_.push_back({gradient.narrow(0, begin, end - begin), count, count, {}, nullptr, false});
    end = begin;
    count = 0;
  };
  for (size_t i = parameters.size(); i-- > 0;) {
    const int64_t size = parameters[i].numel();
    if (count > 0 && end - begin + size > bucket_size) close_bucket();
    begin -= size;
    ++count;
    auto node = torch::autograd::impl::grad_accumulator(parameters[i]);
    const uintptr_t key = node->add_post_hook(
        std::make_unique<AfterAccumulation>([this, bucket = buckets_.size()] { OnAccumulated(bucket); }));
    hooks_.push_back({std::move(node), key});
  }
  if (count > 0) close_bucket();
}

GradientReducer::~GradientReducer() {
  for (const Hook& hook : hooks_) hook.node->del_post_hook(hook.key);
}

void GradientReducer::Arm() {
  armed_ = true;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
}

void GradientReducer::OnAccumulated(size_t bucket) {
  if (!armed_ || buckets_[bucket].missing == 0 || --buckets_[bucket].missing > 0) return;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) StartNext();
}

void GradientReducer::StartNext() {
  const torch::NoGradGuard no_grad;
  if (next_ == 0) first_start_ = SteadyNow();
  Bucket& bucket = buckets_[next_++];
  bucket.travelling = bf16_ ? bucket.gradient.to(torch::kBFloat16) : bucket.gradient;
  const int64_t before = collective_.bytes_sent();
  bucket.work = collective_.StartAllReduce(bucket.travelling);
  cost_.bytes_sent += collective_.bytes_sent() - before;
  ++cost_.all_reduces;
}

absl::Status GradientReducer::WaitFor(Bucket* bucket) {
  if (bucket->work == nullptr) return absl::OkStatus();
  const int64_t before = collective_.bytes_sent();
  const absl::Status status = std::exchange(bucket->work, nullptr)->Wait();
  cost_.bytes_sent += collective_.bytes_sent() - before;
  return status;
}

absl::Status GradientReducer::Interrupt() {
  const torch::NoGradGuard no_grad;
  armed_ = false;
  absl::Status status;
  for (Bucket& bucket : buckets_) {
    if (bucket.work == nullptr) continue;
    status.Update(WaitFor(&bucket));
    if (!bf16_) bucket.travelling = bucket.gradient.clone();
    bucket.kept = true;
  }
  return status;
}

absl::Status GradientReducer::Finish() {
  const torch::NoGradGuard no_grad;
  const absl::Time entered = SteadyNow();
  armed_ = false;
  while (next_ < buckets_.size()) StartNext();
  absl::Status status;
  for (Bucket& bucket : buckets_) {
    status.Update(WaitFor(&bucket));
    if (bf16_ || bucket.kept) bucket.gradient.copy_(bucket.travelling);
    bucket.travelling.reset();
    bucket.kept = false;
  }
  next_ = 0;
  const absl::Time finished = SteadyNow();
  cost_.exposed += finished - entered;
  cost_.all_reducing += finished - first_start_;
  return status;
}

}  // namespace skein
