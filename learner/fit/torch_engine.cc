// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/lstm.h>
#include <c10/core/GradMode.h>
#include <torch/utils.h>

#include <utility>

#include "learner/fit/fit_engine.h"
#include "learner/optimize/autocast.h"

namespace skein {
namespace {

class TorchEngine : public FitEngine {
 public:
  TorchEngine(const v1::FitTrainConfig& train, const NetLayout* layout, std::vector<torch::Tensor> views)
      : layout_(*layout),
        views_(std::move(views)),
        limit_(train.micro_batch_size(), kFitWords),
        precision_(train.precision() == v1::PRECISION_BF16 ? torch::kBFloat16 : torch::kFloat32),
        zero_bias_(torch::zeros({4 * layout->hidden}, views_[0].options().requires_grad(false))) {}

  absl::Status Gradient(const SequenceBatch& batch, PartRange parts, double scale, torch::Tensor gradient,
                        std::vector<double>* losses) override {
    return ForEach(
        batch, parts, losses, [&] { gradient.zero_(); }, [&](const torch::Tensor& loss) { (loss * scale).backward(); });
  }

  absl::Status Loss(const SequenceBatch& batch, PartRange parts, std::vector<double>* losses) override {
    const torch::NoGradGuard no_grad;
    return ForEach(
        batch, parts, losses, [] {}, [](const torch::Tensor&) {});
  }

  uint64_t sequences() const override { return sequences_; }
  int64_t out_of_memory() const override { return limit_.out_of_memory(); }
  void SetMemoryProbe(std::function<void(int64_t)> probe) override { limit_.SetProbe(std::move(probe)); }

 private:
  // All parts as one: where products are large, nothing is gained by dividing them.
  template <typename Begin, typename After>
  absl::Status ForEach(const SequenceBatch& batch, PartRange parts, std::vector<double>* losses, Begin begin,
                       After after) {
    losses->assign(parts.last - parts.first, 0);
    const uint32_t first_row = batch.parts[parts.first], last_row = batch.parts[parts.last];
    MemoryLimit::Work work;
    torch::Tensor total;
    work.begin = [&] {
      begin();
      sequences_ = 0;
      total = torch::zeros({}, views_[0].options().dtype(torch::kFloat64).requires_grad(false));
      return absl::OkStatus();
    };
    work.piece = [&](int64_t first, int64_t rows, bool) {
      const uint32_t from = first_row + static_cast<uint32_t>(first);
      const uint32_t to = from + static_cast<uint32_t>(rows);
      const torch::Tensor loss = SumOfLosses(PackRows(batch, from, to));
      after(loss);
      total.add_(loss.detach());
      sequences_ += SequencesOf(batch, from, to);
    };
    if (absl::Status s = limit_.Run(last_row - first_row, work); !s.ok()) return s;
    (*losses)[0] = total.item<double>();
    return absl::OkStatus();
  }

  torch::Tensor SumOfLosses(const PackedSteps& steps) {
    const auto places = static_cast<int64_t>(steps.places());
    const auto as_tensor = [&](const std::vector<uint32_t>& numbers) {
      return at::from_blob(const_cast<uint32_t*>(numbers.data()), {static_cast<int64_t>(numbers.size())}, torch::kInt32)
          .to(torch::kInt64);
    };
    const torch::Device device = views_[0].device();
    const torch::Tensor input = as_tensor(steps.input).to(device), target = as_tensor(steps.target).to(device);
    // A copy: backward reads it when `steps` may be gone.
    const torch::Tensor weight = at::from_blob(const_cast<float*>(steps.weight.data()), {places}).clone().to(device);
    const torch::Tensor counts = as_tensor(steps.counts);  // LibTorch wants them on the CPU.
    const ScopedAutocast autocast(device, precision_);
    const auto layers = static_cast<int64_t>(layout_.layers.size());
    std::vector<torch::Tensor> weights;
    for (int64_t l = 0; l < layers; ++l) {
      const size_t at = 1 + 3 * static_cast<size_t>(l);
      weights.insert(weights.end(), {views_[at], views_[at + 1], views_[at + 2].view({-1}), zero_bias_});
    }
    const torch::Tensor zeros =
        torch::zeros({layers, static_cast<int64_t>(steps.counts[0]), layout_.hidden}, zero_bias_.options());
    const torch::Tensor output = std::get<0>(at::lstm(at::embedding(views_[0], input), counts, {zeros, zeros}, weights,
                                                      true, layers, 0.0, c10::GradMode::is_enabled(), false));
    const torch::Tensor logits = at::linear(output, views_[views_.size() - 2], views_.back().view({-1}))
                                     .narrow(1, 0, layout_.classes)
                                     .to(torch::kFloat32);
    const torch::Tensor chosen = at::log_softmax(logits, 1).gather(1, target.unsqueeze(1)).squeeze(1);
    return -(chosen * weight).sum();
  }

  const NetLayout& layout_;
  const std::vector<torch::Tensor> views_;
  MemoryLimit limit_;
  uint64_t sequences_ = 0;
  const torch::ScalarType precision_;
  const torch::Tensor zero_bias_;
};

}  // namespace

std::unique_ptr<FitEngine> MakeTorchEngine(const v1::FitTrainConfig& train, const NetLayout* layout,
                                           std::vector<torch::Tensor> views) {
  return std::make_unique<TorchEngine>(train, layout, std::move(views));
}

}  // namespace skein
