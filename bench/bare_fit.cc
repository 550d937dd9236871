// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_fit.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "learner/optimize/autocast.h"
#include "learner/ranks/training_device.h"
#include "learner/sequence/key_names.h"
#include "learner/sequence/net_layout.h"

namespace skein {
namespace {

struct SequenceNetImpl : torch::nn::Module {
  SequenceNetImpl(const NetLayout& layout, const std::vector<float>& values)
      : embedding(register_module("embedding", torch::nn::Embedding(layout.classes, layout.embedding_size))),
        lstm(register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(layout.embedding_size, layout.hidden)
                                                         .num_layers(static_cast<int64_t>(layout.layers.size()))
                                                         .batch_first(true)))),
        output(register_module("output", torch::nn::Linear(layout.hidden, layout.classes))) {
    const torch::NoGradGuard no_grad;
    const auto initial = [&](const NetLayout::Parameter& parameter) {
      return torch::from_blob(const_cast<float*>(values.data()) + parameter.offset,
                              {parameter.rows, parameter.columns});
    };
    embedding->weight.copy_(initial(layout.embedding));
    auto of_lstm = lstm->named_parameters();
    for (size_t l = 0; l < layout.layers.size(); ++l) {
      of_lstm[absl::StrCat("weight_ih_l", l)].copy_(initial(layout.layers[l].input));
      of_lstm[absl::StrCat("weight_hh_l", l)].copy_(initial(layout.layers[l].recurrent));
      of_lstm[absl::StrCat("bias_ih_l", l)].copy_(initial(layout.layers[l].bias).view({-1}));
      of_lstm[absl::StrCat("bias_hh_l", l)].zero_();
      of_lstm[absl::StrCat("bias_hh_l", l)].set_requires_grad(false);
    }
    output->weight.copy_(initial(layout.output).narrow(0, 0, layout.classes));
    output->bias.copy_(initial(layout.output_bias).view({-1}).narrow(0, 0, layout.classes));
  }

  // Of classes [N, T] the logits [N, T, classes].
  torch::Tensor Forward(const torch::Tensor& input) {
    return output->forward(std::get<0>(lstm->forward(embedding->forward(input))));
  }

  torch::nn::Embedding embedding;
  torch::nn::LSTM lstm;
  torch::nn::Linear output;
};
TORCH_MODULE(SequenceNet);

SequenceNet MakeNet(const v1::FitConfig& config, uint32_t classes) {
  const v1::FitModelConfig& model = config.model();
  const NetLayout layout(classes, model.embedding(), model.hidden(), model.layers());
  std::vector<float> values(static_cast<size_t>(layout.size));
  InitializeNet(layout, config.seed(), values.data());
  return SequenceNet(layout, values);
}

// All [N, T].
struct PaddedBatch {
  torch::Tensor input, target;  // Classes.
  torch::Tensor mask;           // 1 where there is a key or an end.
  uint64_t tokens = 0;          // Sum of the mask.
};

PaddedBatch Pad(const SequenceBatch& batch) {
  const Sequences& rows = batch.rows;
  const auto height = static_cast<int64_t>(batch.sequences), width = static_cast<int64_t>(rows.steps(0));
  PaddedBatch padded{torch::zeros({height, width}, torch::kInt64), torch::zeros({height, width}, torch::kInt64),
                     torch::zeros({height, width}), batch.steps};
  int64_t* input = padded.input.data_ptr<int64_t>();
  int64_t* target = padded.target.data_ptr<int64_t>();
  float* mask = padded.mask.data_ptr<float>();
  for (size_t row = 0; row < rows.size(); ++row) {
    const uint32_t* const keys = rows.classes.data() + rows.begins[row];
    for (uint32_t copy = 0; copy < batch.weights[row]; ++copy, input += width, target += width, mask += width) {
      for (uint32_t t = 0; t < rows.steps(row); ++t) {
        input[t] = t == 0 ? Vocabulary::kStart : keys[t - 1];
        target[t] = t < rows.length(row) ? keys[t] : Vocabulary::kEnd;
        mask[t] = 1;
      }
    }
  }
  return padded;
}

}  // namespace

struct BareFit::Impl {
  Impl(const v1::FitConfig& config, uint32_t classes, uint32_t torch_threads, torch::Device on)
      : train(config.train()),
        threads(static_cast<int>(torch_threads)),
        device(on),
        precision(train.precision() == v1::PRECISION_BF16 ? torch::kBFloat16 : torch::kFloat32),
        net(OnDevice(MakeNet(config, classes), on)),
        optimizer(net->parameters(), torch::optim::AdamOptions(train.lr()).eps(train.adam_epsilon())) {}

  static SequenceNet OnDevice(SequenceNet net, torch::Device device) {
    net->to(device);
    return net;
  }

  double Step(const PaddedBatch& batch) {
    const torch::Tensor input = batch.input.to(device), target = batch.target.to(device), mask = batch.mask.to(device);
    optimizer.zero_grad();
    torch::Tensor logits;
    {
      const ScopedAutocast autocast(device, precision);
      logits = net->Forward(input);
    }
    const torch::Tensor each =
        torch::nn::functional::cross_entropy(logits.to(torch::kFloat32).flatten(0, 1), target.flatten(),
                                             torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    const torch::Tensor loss = (each * mask.flatten()).sum() / static_cast<double>(batch.tokens);
    loss.backward();
    if (train.max_grad_norm() > 0) torch::nn::utils::clip_grad_norm_(net->parameters(), train.max_grad_norm());
    optimizer.step();
    return loss.item<double>();
  }

  const v1::FitTrainConfig train;
  const int threads;
  const torch::Device device;
  const torch::ScalarType precision;
  SequenceNet net;
  torch::optim::Adam optimizer;
  std::vector<PaddedBatch> batches;
};

BareFit::BareFit(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BareFit::~BareFit() = default;

absl::StatusOr<std::unique_ptr<BareFit>> BareFit::Make(const v1::FitConfig& config, uint32_t classes,
                                                       uint32_t threads) {
  const auto device = ParseTrainingDevice(config.train().device(), 0, "train.device");
  if (!device.ok()) return device.status();
  try {
    return std::unique_ptr<BareFit>(new BareFit(std::make_unique<Impl>(config, classes, threads, *device)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while building the bare model: ", error.what()));
  }
}

absl::Status BareFit::Add(const SequenceBatch& batch) {
  try {
    impl_->batches.push_back(Pad(batch));
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while padding a batch: ", error.what()));
  }
}

absl::StatusOr<double> BareFit::Step(size_t index) {
  try {
    if (at::get_num_threads() != impl_->threads) at::set_num_threads(impl_->threads);
    return impl_->Step(impl_->batches[index]);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed in the bare step: ", error.what()));
  }
}

size_t BareFit::batches() const { return impl_->batches.size(); }
uint64_t BareFit::tokens(size_t index) const { return impl_->batches[index].tokens; }
double BareFit::padded_share(size_t index) const {
  const PaddedBatch& batch = impl_->batches[index];
  return 1 - static_cast<double>(batch.tokens) / static_cast<double>(batch.mask.numel());
}
std::string BareFit::device() const { return impl_->device.str(); }

}  // namespace skein
