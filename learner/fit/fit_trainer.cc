// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_trainer.h"

#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/config/message_settings.h"
#include "base/process/cores.h"
#include "learner/fit/saved_model.h"
#include "learner/network/tensor_codec.h"
#include "learner/optimize/memory_limit.h"
#include "learner/ranks/collective.h"
#include "learner/ranks/training_device.h"
#include "learner/sequence/fit_settings.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr uint32_t kHeldOutBatch = 256;  // Sequences that are judged together, at least.

v1::FitConfig WithParts(v1::FitConfig config, const Collective* collective) {
  const uint32_t ranks = collective == nullptr ? 1 : static_cast<uint32_t>(collective->size());
  config.mutable_train()->set_parts(PartsFor(config.train(), ranks));
  return config;
}

// What is set, or as many as parts, and cores, where Torch computes the passes on the processor.
uint32_t TorchThreads(const v1::FitConfig& config, uint32_t own_parts) {
  if (config.train().threads() > 0) return config.train().threads();
  if (config.train().precision() != v1::PRECISION_BF16) return 1;
  return std::min(own_parts, Cores());
}

// LibTorch throws in many ways; here they end.
template <typename Work>
absl::Status Guarded(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    if (IsOutOfMemory(error)) {
      return absl::ResourceExhaustedError(
          "not enough memory for the model; make model.embedding, model.hidden or model.layers smaller");
    }
    const auto* const torch_error = dynamic_cast<const c10::Error*>(&error);
    return absl::InternalError(torch_error != nullptr ? torch_error->what_without_backtrace() : error.what());
  }
}

}  // namespace

double LearningRate(const v1::FitTrainConfig& train, double done) {
  if (train.lr_schedule() == v1::FIT_SCHEDULE_CONSTANT) return train.lr();
  return train.lr() * 0.5 * (1 + std::cos(kPi * std::min(1.0, done)));
}

FitTrainer::FitTrainer(const v1::FitConfig& config, const Vocabulary& vocabulary, Collective* collective)
    : config_(WithParts(config, collective)),
      vocabulary_(vocabulary),
      layout_(vocabulary.classes(), config.model().embedding(), config.model().hidden(), config.model().layers()),
      collective_(collective) {
  progress_.best_held_out_loss = std::numeric_limits<double>::infinity();
  if (collective == nullptr) return;
  rank_ = static_cast<uint32_t>(collective->rank());
  ranks_ = static_cast<uint32_t>(collective->size());
}

FitTrainer::~FitTrainer() = default;

absl::StatusOr<std::unique_ptr<FitTrainer>> FitTrainer::Make(const v1::FitConfig& config, const Vocabulary& vocabulary,
                                                             Collective* collective, int local_rank) {
  std::unique_ptr<FitTrainer> trainer(new FitTrainer(config, vocabulary, collective));
  const uint32_t parts = trainer->config_.train().parts();
  if (parts % trainer->ranks_ != 0) {
    return absl::InvalidArgumentError(absl::StrCat("train.parts (", parts,
                                                   ") must be a multiple of the number of ranks (", trainer->ranks_,
                                                   "), which share the parts of a batch"));
  }
  trainer->own_parts_ = parts / trainer->ranks_;
  const auto device = ParseTrainingDevice(config.train().device(), local_rank, "train.device");
  if (!device.ok()) return device.status();
  const absl::Status status = Guarded([&] {
    FitTrainer& t = *trainer;
    at::set_num_threads(static_cast<int>(TorchThreads(trainer->config_, trainer->own_parts_)));
    std::vector<float> values(static_cast<size_t>(t.layout_.size));
    InitializeNet(t.layout_, config.seed(), values.data());
    for (const NetLayout::Parameter& parameter : t.layout_.parameters()) {
      torch::Tensor tensor =
          torch::from_blob(values.data() + parameter.offset, {parameter.rows, parameter.columns}).clone().to(*device);
      tensor.requires_grad_(true);
      t.parameters_.push_back(std::move(tensor));
    }
    t.adam_ = std::make_unique<FlatAdam>(t.parameters_, config.train().adam_epsilon());
    t.best_ = t.adam_->parameters().clone();
    const bool by_torch = device->is_cuda() || config.train().precision() == v1::PRECISION_BF16;
    t.engine_ = by_torch ? MakeTorchEngine(config.train(), &t.layout_, t.parameters_)
                         : MakeThreadEngine(config.train(), &t.layout_, t.own_parts_, t.adam_->parameters());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return trainer;
}

int64_t FitTrainer::parameter_count() const { return layout_.size; }
uint64_t FitTrainer::out_of_memory() const { return static_cast<uint64_t>(engine_->out_of_memory()); }

absl::StatusOr<std::vector<double>> FitTrainer::GatherNumbers(const std::vector<double>& mine) const {
  if (collective_ == nullptr) return mine;
  const torch::Tensor numbers = torch::tensor(mine, torch::kFloat64);
  const auto all = collective_->Gather(numbers);
  if (!all.ok()) return all.status();
  const double* const data = all->data_ptr<double>();
  return std::vector<double>(data, data + all->numel());
}

absl::StatusOr<FitStep> FitTrainer::Step(const SequenceBatch& batch, double lr, bool stops) {
  FitStep step;
  const absl::Status status = Guarded([&]() -> absl::Status {
    std::vector<double> losses;
    const double scale = 1.0 / static_cast<double>(batch.steps);
    if (absl::Status s = engine_->Gradient(batch, OwnParts(), scale, adam_->gradient(), &losses); !s.ok()) return s;
    if (collective_ != nullptr) {
      if (absl::Status s = collective_->AllReduce(adam_->gradient()); !s.ok()) return s;
    }
    // Of each rank: the losses of its parts, how many sequences they are of, whether it stops.
    const size_t parts = losses.size();
    losses.insert(losses.end(), {static_cast<double>(engine_->sequences()), stops ? 1.0 : 0.0});
    const auto all = GatherNumbers(losses);
    if (!all.ok()) return all.status();
    double loss = 0;
    for (size_t i = 0; i < all->size(); ++i) {
      const size_t at = i % losses.size();
      if (at < parts) {
        loss += (*all)[i];
      } else if (at == parts) {
        step.sequences += static_cast<uint64_t>((*all)[i]);
      } else {
        step.any_stops |= (*all)[i] != 0;
      }
    }
    step.loss = loss / static_cast<double>(batch.steps);
    step.distinct_keys = batch.distinct_steps;
    const double limit = config_.train().max_grad_norm();
    if (adam_->gradient().is_cuda()) {
      const FlatAdam::Enqueued enqueued = adam_->EnqueueStep(
          torch::full({}, lr, torch::dtype(torch::kFloat64).device(adam_->gradient().device())), limit);
      step.gradient_norm = enqueued.norm.item<double>();
      step.taken = enqueued.taken.item<bool>();
    } else {
      step.gradient_norm = adam_->GradientNorm();
      step.taken = std::isfinite(step.gradient_norm);
      if (step.taken) {
        adam_->Step(lr, limit > 0 && step.gradient_norm > limit ? limit / step.gradient_norm : 1.0);
      }
    }
    progress_.epoch_loss += loss;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  ++progress_.steps;
  if (!step.taken) ++progress_.skipped;
  progress_.sequences += step.sequences;
  progress_.keys += batch.steps;
  progress_.epoch_sequences += step.sequences;
  progress_.epoch_keys += batch.steps;
  progress_.next_batch = batch.number + 1;
  return step;
}

absl::StatusOr<double> FitTrainer::Loss(const SequenceStore& store, Part part) {
  BatchStream::Options options;
  options.part = part;
  options.order.shuffled = false;
  options.order.window = 1;
  options.order.batch_size = std::max(kHeldOutBatch, config_.train().batch_size());
  options.parts = config_.train().parts();
  options.readers = config_.data().readers();
  options.prefetch = config_.data().prefetch();
  BatchStream batches(&store, options);
  double loss = 0, keys = 0;
  for (;;) {
    auto batch = batches.Next();
    if (!batch.ok()) return batch.status();
    if (*batch == nullptr) break;
    std::vector<double> losses;
    const absl::Status status = Guarded([&] { return engine_->Loss(**batch, OwnParts(), &losses); });
    if (!status.ok()) return status;
    const auto all = GatherNumbers(losses);
    if (!all.ok()) return all.status();
    for (const double value : *all) loss += value;
    keys += static_cast<double>((*batch)->steps);
  }
  return keys > 0 ? loss / keys : 0.0;
}

void FitTrainer::EndEpoch(std::optional<double> held_out_loss) {
  FitProgress& p = progress_;
  ++p.epoch;
  p.next_batch = p.epoch_sequences = p.epoch_keys = 0;
  p.epoch_loss = 0;
  p.held_out_loss = held_out_loss.value_or(0);
  if (!held_out_loss || *held_out_loss < p.best_held_out_loss) {
    p.best_epoch = p.epoch;
    if (held_out_loss) p.best_held_out_loss = *held_out_loss;
    best_.copy_(adam_->parameters());
  }
  p.finished = IsFinished();
}

bool FitTrainer::IsFinished() const {
  const uint64_t patience = config_.train().patience();
  return progress_.epoch >= config_.train().epochs() ||
         (patience > 0 && progress_.epoch - progress_.best_epoch >= patience);
}

absl::StatusOr<DetectionChoice> FitTrainer::ChooseFinalLimits(const SequenceStore& store,
                                                              const ChoiceProgress& progress) {
  const torch::Tensor best = best_.cpu().contiguous();
  NetWeights weights(&layout_);
  weights.Update(best.data_ptr<float>());
  const uint32_t set = config_.train().threads();
  const uint32_t threads = set > 0 ? set : Cores();
  return ChooseDetection(config_.detect(), store, layout_, weights, threads, progress);
}

Checkpoint FitTrainer::Save(const std::string& data_digest, const DetectionChoice* choice) const {
  Checkpoint checkpoint;
  checkpoint.env_steps = progress_.sequences;
  checkpoint.iteration = progress_.steps;
  checkpoint.episodes = progress_.epoch;
  checkpoint.env_id = kSequenceModelId;
  checkpoint.config_yaml = SettingsYaml(config_);
  NamedTensors model;
  const std::vector<NetLayout::Parameter> places = layout_.parameters();
  for (size_t i = 0; i < places.size(); ++i) model.emplace_back(places[i].name, parameters_[i].detach());
  checkpoint.model = EncodeTensors(model);
  checkpoint.optimizer = EncodeTensors({{"steps", torch::tensor({adam_->steps()}, torch::kInt64)},
                                        {"exp_avg", adam_->exp_avg()},
                                        {"exp_avg_sq", adam_->exp_avg_sq()}});
  checkpoint.state = EncodeTensors(SavedModelState(progress_, best_, vocabulary_, data_digest, choice));
  return checkpoint;
}

absl::Status FitTrainer::Restore(const Checkpoint& checkpoint, const std::string& data_digest) {
  if (checkpoint.env_id != kSequenceModelId) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint is a policy's for ", checkpoint.env_id, ", not one of `skein fit`"));
  }
  const auto saved = ReadSavedModel(checkpoint, "the checkpoint");
  if (!saved.ok()) return saved.status();
  if (saved->data_digest != data_digest || saved->vocabulary.names() != vocabulary_.names()) {
    return absl::FailedPreconditionError(
        "the data, or how they are read and split, are not those that this training began with; give those, or another "
        "name, or --resume never");
  }
  if (absl::Status s = CheckGoesOn(saved->config, config_); !s.ok()) return s;
  const auto model = DecodeTensors(checkpoint.model), optimizer = DecodeTensors(checkpoint.optimizer);
  for (const absl::Status& s : {model.status(), optimizer.status()}) {
    if (!s.ok()) return absl::DataLossError(s.message());
  }
  const torch::Tensor* const steps = FindTensor(*optimizer, "steps", torch::kInt64, 1);
  const torch::Tensor* const exp_avg = FindTensor(*optimizer, "exp_avg", torch::kFloat32, layout_.size);
  const torch::Tensor* const exp_avg_sq = FindTensor(*optimizer, "exp_avg_sq", torch::kFloat32, layout_.size);
  for (const auto& [name, tensor] : {std::pair{"steps", steps}, {"exp_avg", exp_avg}, {"exp_avg_sq", exp_avg_sq}}) {
    if (tensor == nullptr) return MissingTensor(name);
  }
  const std::vector<NetLayout::Parameter> places = layout_.parameters();
  for (const NetLayout::Parameter& place : places) {
    if (FindTensor(*model, place.name, torch::kFloat32, place.size()) == nullptr) return MissingTensor(place.name);
  }
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < places.size(); ++i) {
    parameters_[i].copy_(
        FindTensor(*model, places[i].name, torch::kFloat32, places[i].size())->view_as(parameters_[i]));
  }
  adam_->Restore(steps->item<int64_t>(), *exp_avg, *exp_avg_sq);
  best_.copy_(torch::tensor(saved->parameters));
  progress_ = saved->progress;
  progress_.finished = progress_.finished && IsFinished();  // More epochs may be wanted now.
  return absl::OkStatus();
}

}  // namespace skein
