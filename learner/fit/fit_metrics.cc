// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_metrics.h"

#include <limits>

namespace skein {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::Registry;

prometheus::Counter* Counter(Registry* registry, const char* name, const char* help) {
  return &BuildCounter().Name(name).Help(help).Register(*registry).Add({});
}

// What is not known yet is NaN.
prometheus::Gauge* Gauge(Registry* registry, const char* name, const char* help) {
  prometheus::Gauge& gauge = BuildGauge().Name(name).Help(help).Register(*registry).Add({});
  gauge.Set(std::numeric_limits<double>::quiet_NaN());
  return &gauge;
}

double Number(uint64_t count) { return static_cast<double>(count); }

}  // namespace

FitMetrics::FitMetrics(Registry* registry) {
  epoch_ = Gauge(registry, "skein_fit_epochs", "Finished passes over the training part");
  loss_ = Gauge(registry, "skein_fit_loss", "Mean -log p of a key in the last gradient step");
  epoch_loss_ = Gauge(registry, "skein_fit_epoch_loss", "The same over the last finished epoch");
  held_out_loss_ = Gauge(registry, "skein_fit_held_out_loss",
                         "The same of the held-out part, after the last epoch; NaN without one");
  gradient_norm_ = Gauge(registry, "skein_fit_gradient_norm", "Length of the last gradient before it was clipped");
  done_ = Gauge(registry, "skein_fit_done_ratio", "Share of train.epochs that is done, 0-1");
  keys_per_second_ = Gauge(registry, "skein_fit_keys_per_second", "Keys trained on, over the last 10 s");
  eta_ = Gauge(registry, "skein_fit_eta_seconds", "Until train.epochs are done, at the present rate");
  sequences_ = Gauge(registry, "skein_fit_sequences", "Sequences used so far, each once an epoch");
  keys_ = Gauge(registry, "skein_fit_keys", "Keys predicted so far, ends of sequences included");
  steps_ = Gauge(registry, "skein_fit_steps", "Gradient steps so far");
  skipped_ = Gauge(registry, "skein_fit_skipped_steps", "Steps left out because their gradient was not finite");
  out_of_memory_ = Gauge(registry, "skein_fit_out_of_memory", "Times that this rank halved its micro-batch");
  waited_ = Gauge(registry, "skein_fit_data_wait_seconds", "Time in which training waited for batches");
  working_ = Gauge(registry, "skein_fit_data_work_seconds", "Time in which threads read and prepared batches");
  train_sequences_ = Gauge(registry, "skein_fit_train_sequences", "Sequences of the training part");
  held_sequences_ = Gauge(registry, "skein_fit_held_out_sequences", "Sequences that are held out");
  unknown_keys_ = Gauge(registry, "skein_fit_unknown_keys", "Keys of the data that are beyond the vocabulary");
  checkpoints_ = Counter(registry, "skein_fit_checkpoints_total", "Checkpoints written");
  failed_checkpoints_ =
      Counter(registry, "skein_fit_checkpoint_failures_total", "Checkpoints that could not be written");
}

void FitMetrics::SetStep(const FitProgress& progress, const FitStep& step, uint64_t out_of_memory) {
  loss_->Set(step.loss);
  gradient_norm_->Set(step.gradient_norm);
  sequences_->Set(Number(progress.sequences));
  keys_->Set(Number(progress.keys));
  steps_->Set(Number(progress.steps));
  skipped_->Set(Number(progress.skipped));
  out_of_memory_->Set(Number(out_of_memory));
}

void FitMetrics::SetEpoch(const FitProgress& progress, double loss, std::optional<double> held_out_loss) {
  epoch_->Set(Number(progress.epoch));
  epoch_loss_->Set(loss);
  held_out_loss_->Set(held_out_loss.value_or(std::numeric_limits<double>::quiet_NaN()));
}

void FitMetrics::SetData(const DataCounts& counts) {
  train_sequences_->Set(Number(counts.train_sequences));
  held_sequences_->Set(Number(counts.held_sequences));
  unknown_keys_->Set(Number(counts.unknown_keys));
}

void FitMetrics::SetDone(double share, double keys_per_second, double eta_seconds) {
  done_->Set(share);
  keys_per_second_->Set(keys_per_second);
  eta_->Set(eta_seconds < 0 ? std::numeric_limits<double>::quiet_NaN() : eta_seconds);
}

void FitMetrics::SetDataTimes(double waited_seconds, double working_seconds) {
  waited_->Set(waited_seconds);
  working_->Set(working_seconds);
}

void FitMetrics::CountCheckpoint(bool written) { (written ? checkpoints_ : failed_checkpoints_)->Increment(); }

}  // namespace skein
