// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/config/message_settings.h"
#include "base/net/credentials.h"
#include "base/net/join_flags.h"
#include "base/process/clock.h"
#include "base/process/file.h"
#include "base/telemetry/format_count.h"
#include "base/telemetry/format_seconds.h"
#include "learner/fit/fit_folder.h"
#include "learner/fit/fit_log.h"
#include "learner/fit/fit_ranks.h"
#include "learner/fit/fit_report.h"
#include "learner/fit/fit_trainer.h"
#include "learner/fit/work_progress.h"
#include "learner/ranks/rank_group.h"
#include "learner/run/checkpoint.h"
#include "learner/sequence/epoch_order.h"
#include "learner/sequence/fit_settings.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(5);

// One rank's training, from its first batch to its last.
class FitRun {
 public:
  FitRun(const FitOptions& options, FitRanks ranks, ShutdownSignal* shutdown)
      : options_(options),
        config_(options.config),
        ranks_(std::move(ranks)),
        shutdown_(shutdown),
        leads_(ranks_.place.rank == 0),
        folder_(options.run_directory),
        checkpoints_(folder_ + "/checkpoints") {}

  absl::Status Run();

 private:
  absl::Status OpenData();
  absl::Status Resume();
  EpochOptions Order() const {
    return {config_.seed(), trainer_->progress().epoch, config_.data().window(), config_.train().batch_size(), true};
  }
  absl::Status TrainEpoch();
  absl::Status EndEpoch();
  absl::Status Finish();
  // By rank 0. A failure is said and counted, and training goes on; `must`: it is returned.
  absl::Status Save(const DetectionChoice* choice, bool must);
  void LogStep(const FitStep& step, double lr, bool epoch_ends);
  void Say(const std::string& line) const {
    if (!leads_) return;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  // Steps and keys of the whole training, if it is not ended early.
  double Done() const;

  const FitOptions& options_;
  const v1::FitConfig& config_;
  const FitRanks ranks_;
  ShutdownSignal* const shutdown_;
  const bool leads_;
  const std::string folder_, checkpoints_;
  FitFolder claimed_;  // Rank 0's.
  std::unique_ptr<SequenceStore> store_;
  std::unique_ptr<FitTrainer> trainer_;
  std::unique_ptr<FitLog> log_;            // Rank 0's.
  std::map<std::string, double> pending_;  // Of an epoch's last step; its line has the epoch's numbers, too.
  std::unique_ptr<FitReport> report_;
  bool stopped_ = false;
  uint64_t steps_per_epoch_ = 0;
  absl::Duration saved_, said_;
  std::string checkpoint_path_;
};

double FitRun::Done() const {
  const FitProgress& p = trainer_->progress();
  const double of_epoch =
      steps_per_epoch_ == 0 ? 0 : static_cast<double>(p.next_batch) / static_cast<double>(steps_per_epoch_);
  return (static_cast<double>(p.epoch) + of_epoch) / config_.train().epochs();
}

absl::Status FitRun::OpenData() {
  WorkProgress reading([this](const std::string& line) { Say(line); }, MonotonicNow());
  const auto progress = [&](double share) {
    reading.Set("reading the data", share, MonotonicNow());
    return !shutdown_->signalled();
  };
  const absl::Status status = InTurn(ranks_, [&] {
    auto store = SequenceStore::Open(config_, folder_ + "/data", progress);
    if (store.ok()) store_ = *std::move(store);
    return store.status();
  });
  if (!status.ok()) return status;
  if (ranks_.collective != nullptr) {
    const auto digests = ranks_.collective->GatherBytes(store_->digest());
    if (!digests.ok()) return digests.status();
    for (size_t rank = 0; rank < digests->size(); ++rank) {
      if ((*digests)[rank] == (*digests)[0]) continue;
      return absl::DataLossError(absl::StrCat("the data of rank ", rank, " are not those of rank 0 (digests ",
                                              (*digests)[rank], " and ", (*digests)[0],
                                              "); give all ranks the same files"));
    }
  }
  const DataCounts& counts = store_->counts();
  Say(absl::StrCat("data: ", FormatCount(counts.train_sequences), " sequences with ", FormatCount(counts.train_keys),
                   " keys to train on, ", FormatCount(counts.held_sequences), " held out, vocabulary of ",
                   FormatCount(store_->vocabulary().names().size()), ", digest ", store_->digest()));
  for (const auto& [count, what] : {std::pair{counts.empty_lines, "lines are empty"},
                                    {counts.cut, "sequences are cut off after data.max_length keys"},
                                    {counts.unknown_keys, "keys are beyond the vocabulary and count as unknown"}}) {
    if (count > 0) Say(absl::StrCat("note: ", FormatCount(count), " ", what));
  }
  if (leads_ && counts.held_sequences == 0) {
    spdlog::warn(
        "no sequence is held out (data.holdout {}): training cannot stop early, and no limit of `skein detect` is "
        "chosen, which will want --probability or --top-g",
        config_.data().holdout());
  }
  return absl::OkStatus();
}

absl::Status FitRun::Resume() {
  uint64_t at = 0;
  if (options_.resume != ResumeMode::kNever) {
    const auto found =
        LoadNewestCheckpoint(checkpoints_, options_.resume == ResumeMode::kMust ? Damage::kRefuse : Damage::kSkip);
    if (!found.ok() && (!absl::IsNotFound(found.status()) || options_.resume == ResumeMode::kMust)) {
      return found.status();
    }
    if (found.ok()) {
      for (const std::string& warning : found->warnings) spdlog::warn("{}", warning);
      if (absl::Status s = trainer_->Restore(found->checkpoint, store_->digest()); !s.ok()) {
        return absl::Status(s.code(), absl::StrCat(found->path, ": ", s.message()));
      }
      at = trainer_->progress().sequences;
      checkpoint_path_ = found->path;
      Say(absl::StrCat("goes on from ", found->path, ": epoch ", trainer_->progress().epoch + 1, ", step ",
                       FormatCount(trainer_->progress().steps)));
    }
  }
  if (ranks_.collective == nullptr) return absl::OkStatus();
  const auto all = ranks_.collective->GatherBytes(absl::StrCat(at));
  if (!all.ok()) return all.status();
  if (std::all_of(all->begin(), all->end(), [&](const std::string& rank) { return rank == all->front(); })) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(folder_, ": the ranks found different checkpoints; it must be one folder that all nodes share"));
}

absl::Status FitRun::Save(const DetectionChoice* choice, bool must) {
  saved_ = MonotonicNow();
  if (!leads_) return absl::OkStatus();
  log_->Sync();
  const auto path = SaveCheckpoint(checkpoints_, trainer_->Save(store_->digest(), choice), config_.checkpoint().keep());
  report_->CountCheckpoint(path.ok());
  if (path.ok()) {
    checkpoint_path_ = *path;
    return absl::OkStatus();
  }
  if (must) return path.status();
  spdlog::error("the checkpoint could not be written, training goes on: {}", std::string(path.status().message()));
  return absl::OkStatus();
}

void FitRun::LogStep(const FitStep& step, double lr, bool epoch_ends) {
  const FitProgress& p = trainer_->progress();
  report_->SetProgress(p, step, Done(), trainer_->out_of_memory());
  const uint32_t every = config_.logging().log_interval(), gpu_every = config_.logging().gpu_log_interval();
  const bool due = every > 0 && p.steps % every == 0, gpu_due = gpu_every > 0 && p.steps % gpu_every == 0;
  if (leads_ && (due || gpu_due)) {
    std::map<std::string, double> numbers = {{"epoch", static_cast<double>(p.epoch + 1)},
                                             {"loss", step.loss},
                                             {"lr", lr},
                                             {"gradient_norm", step.gradient_norm},
                                             {"sequences", static_cast<double>(p.sequences)},
                                             {"keys", static_cast<double>(p.keys)},
                                             {"keys_per_second", report_->keys_per_second()},
                                             {"data_wait_seconds", report_->data_wait_seconds()},
                                             {"skipped_steps", static_cast<double>(p.skipped)}};
    if (gpu_due) report_->AddResources(&numbers);
    if (epoch_ends) {
      pending_ = std::move(numbers);
    } else {
      log_->Write(p.steps, numbers, absl::Now());
    }
  }
  if (leads_ && !epoch_ends && MonotonicNow() - said_ >= kBetweenLines) {
    said_ = MonotonicNow();
    Say(absl::StrFormat("epoch %d of %d, step %d of %d: loss %.4f, %s keys/s, ETA %s", p.epoch + 1,
                        config_.train().epochs(), p.next_batch, steps_per_epoch_, step.loss,
                        FormatCount(static_cast<uint64_t>(report_->keys_per_second())),
                        FormatSeconds(report_->eta_seconds(Done()))));
  }
}

absl::Status FitRun::TrainEpoch() {
  BatchStream::Options options;
  const FitProgress& p = trainer_->progress();
  options.order = Order();
  options.parts = config_.train().parts();
  options.readers = config_.data().readers();
  options.prefetch = config_.data().prefetch();
  options.first_batch = p.next_batch;
  BatchStream batches(store_.get(), options);
  steps_per_epoch_ = batches.batches();
  const uint32_t save_every = config_.checkpoint().save_interval();
  for (;;) {
    auto batch = batches.Next();
    if (!batch.ok()) return batch.status();
    report_->SetDataTimes(batches.waited(), batches.working());
    if (*batch == nullptr) break;
    const double lr = LearningRate(config_.train(), Done());
    const auto step = trainer_->Step(**batch, lr, shutdown_->signalled());
    if (!step.ok()) return step.status();
    LogStep(*step, lr, p.next_batch == steps_per_epoch_);
    if (step->any_stops) {
      stopped_ = true;
      return absl::OkStatus();
    }
    // After an epoch's last step EndEpoch() saves, once the step's line is written.
    if (save_every > 0 && p.steps % save_every == 0 && p.next_batch < steps_per_epoch_) {
      if (absl::Status s = Save(nullptr, false); !s.ok()) return s;
    }
  }
  report_->EndOfStream();
  return absl::OkStatus();
}

absl::Status FitRun::EndEpoch() {
  FitProgress& p = trainer_->progress();
  const DataCounts& counts = store_->counts();
  if (p.epoch_sequences != counts.train_sequences) {
    return absl::InternalError(absl::StrCat("epoch ", p.epoch + 1, " used ", p.epoch_sequences,
                                            " sequences, want each of ", counts.train_sequences, " once"));
  }
  const double loss = p.epoch_loss / static_cast<double>(p.epoch_keys);
  std::optional<double> held_out;
  if (counts.held_sequences > 0) {
    const auto of_keys = trainer_->Loss(*store_, Part::kHeldOut);
    if (!of_keys.ok()) return of_keys.status();
    held_out = *of_keys;
  }
  trainer_->EndEpoch(held_out);
  report_->SetEpoch(p, loss, held_out);
  const double eta = report_->eta_seconds(Done());
  if (leads_) {
    std::map<std::string, double> numbers = {{"epoch", static_cast<double>(p.epoch)},
                                             {"epoch_loss", loss},
                                             {"epoch_sequences", static_cast<double>(counts.train_sequences)},
                                             {"sequences", static_cast<double>(p.sequences)},
                                             {"keys", static_cast<double>(p.keys)},
                                             {"keys_per_second", report_->keys_per_second()},
                                             {"eta_seconds", eta},
                                             {"skipped_steps", static_cast<double>(p.skipped)}};
    if (held_out) numbers["held_out_loss"] = *held_out;
    numbers.merge(std::exchange(pending_, {}));
    log_->Write(p.steps, numbers, absl::Now());
  }
  said_ = MonotonicNow();
  const std::string judged =
      held_out ? absl::StrFormat("%.4f%s", *held_out, p.best_epoch == p.epoch ? " (best)" : "") : "nothing";
  Say(absl::StrFormat("epoch %d of %d: %s sequences, each once; loss %.4f, held out %s, %s keys/s, ETA %s", p.epoch,
                      config_.train().epochs(), FormatCount(counts.train_sequences), loss, judged,
                      FormatCount(static_cast<uint64_t>(report_->keys_per_second())), FormatSeconds(eta)));
  // After the last epoch in any case: to choose the limits of `skein detect` takes a while, too.
  const uint32_t save_every = config_.checkpoint().save_interval();
  const bool step_is_due = save_every > 0 && p.steps % save_every == 0;
  if (!p.finished && !step_is_due && MonotonicNow() - saved_ < absl::Seconds(config_.checkpoint().min_seconds())) {
    return absl::OkStatus();
  }
  return Save(nullptr, p.finished);
}

absl::Status FitRun::Finish() {
  const FitProgress& p = trainer_->progress();
  if (stopped_ && !p.finished) {
    if (absl::Status s = Save(nullptr, true); !s.ok()) return s;
    Say(absl::StrCat("stopped in epoch ", p.epoch + 1, " at step ", FormatCount(p.steps),
                     "; the same command goes on from ", checkpoint_path_));
    return absl::OkStatus();
  }
  if (!leads_) return absl::OkStatus();
  WorkProgress choosing([this](const std::string& line) { Say(line); }, MonotonicNow());
  const auto choice = trainer_->ChooseFinalLimits(*store_, [&](const char* what, double share) {
    choosing.Set(what, share, MonotonicNow());
    return !shutdown_->signalled();
  });
  if (!choice.ok()) return choice.status();
  const LimitChoice& alone = choice->alone;
  const DetectionChoice* const chosen = alone.sequences > 0 || SetsLimit(config_.detect()) ? &*choice : nullptr;
  const Checkpoint checkpoint = trainer_->Save(store_->digest(), chosen);
  if (absl::Status s = Save(chosen, true); !s.ok()) return s;
  const std::string best =
      store_->counts().held_sequences > 0
          ? absl::StrFormat("epoch %d is the best, held-out loss %.4f", p.best_epoch, p.best_held_out_loss)
          : "the last epoch's parameters, as nothing is held out";
  Say(absl::StrFormat("finished: %s; %s sequences in %s steps, %d skipped", best, FormatCount(p.sequences),
                      FormatCount(p.steps), p.skipped));
  if (alone.unknown > 0) {
    Say(absl::StrCat("note: ", FormatCount(alone.unknown),
                     " held-out sequences have unknown keys; no limit is chosen from these"));
  }
  if (chosen == nullptr && alone.unknown > 0) {
    spdlog::warn(
        "no limit of `skein detect` is chosen, because every held-out sequence has an unknown key; it will want "
        "--probability or --top-g");
  }
  if (chosen != nullptr) {
    const Limits& limits = chosen->limits();
    Say(absl::StrFormat(
        "limits of `skein detect`, chosen from %s held-out sequences: probability %.3g, top-g %d; rule %s",
        FormatCount(alone.sequences), limits.probability, limits.top_g,
        limits.rule == v1::DETECT_RULE_TOP_G ? "top_g" : "probability"));
    if (chosen->has_known) {
      Say(absl::StrCat("they are for other count vectors than the ", FormatCount(chosen->known.size()),
                       " of the data; ", FormatCount(chosen->new_counts),
                       " of these held-out sequences have one that the training part has not"));
    } else {
      Say("they are of the model alone; with --set detect.known_counts=true the same command chooses limits beside the "
          "data's count vectors (docs/fit.md#detection)");
    }
  }
  Say(absl::StrCat("checkpoint ", checkpoint_path_, ", digest ", CheckpointDigest(checkpoint)));
  return absl::OkStatus();
}

absl::Status FitRun::Run() {
  if (leads_ && !options_.claimed) {
    auto claimed = FitFolder::Claim(folder_, options_.resume);
    if (!claimed.ok()) return claimed.status();
    claimed_ = *std::move(claimed);
    if (!claimed_.moved_to().empty()) Say(absl::StrCat("moved what was in ", folder_, " to ", claimed_.moved_to()));
  }
  if (absl::Status s = OpenData(); !s.ok()) return s;
  auto trainer = FitTrainer::Make(config_, store_->vocabulary(), ranks_.collective.get(), ranks_.place.local_rank);
  if (!trainer.ok()) return trainer.status();
  trainer_ = *std::move(trainer);
  if (absl::Status s = Resume(); !s.ok()) return s;
  auto report = FitReport::Start(options_, ranks_.place, store_->counts());
  if (!report.ok()) return report.status();
  report_ = *std::move(report);
  if (leads_) {
    if (absl::Status s = WriteFileAtomically(folder_ + "/config.yaml", SettingsYaml(config_)); !s.ok()) return s;
    auto log = FitLog::Open(folder_, trainer_->progress().steps, config_.logging().tensorboard(), absl::Now());
    if (!log.ok()) return log.status();
    log_ = *std::move(log);
  }
  Say(absl::StrCat("model: ", FormatCount(static_cast<uint64_t>(trainer_->parameter_count())), " parameters; ",
                   ranks_.place.size, ranks_.place.size == 1 ? " rank" : " ranks", ", metrics at ", HttpScheme(), "://",
                   report_->metrics_address(), "/metrics"));
  if (!report_->page().empty()) {
    Say(absl::StrCat("status page and metrics discovery: ", report_->page()));
    Say(absl::StrCat("watch it with: skein top --address ", report_->coordinator_address(),
                     JoinFlags(CredentialFilesInEnvironment(), "client")));
  }
  // Before Done(), which says how much of the work was done by earlier processes: the time left is that of the rest.
  steps_per_epoch_ = BatchesOf(OrderEpoch(store_->blocks(Part::kTrain), Order()), config_.train().batch_size());
  report_->Begin(trainer_->progress(), Done());
  saved_ = said_ = MonotonicNow();
  while (!trainer_->progress().finished && !stopped_) {
    if (absl::Status s = TrainEpoch(); !s.ok()) return s;
    // Who stops after an epoch's last step ends the epoch first, so that its line is written with the step's.
    if (stopped_ && trainer_->progress().next_batch < steps_per_epoch_) break;
    if (absl::Status s = EndEpoch(); !s.ok()) return s;
  }
  const absl::Status finished = Finish();
  const bool cancelled = absl::IsCancelled(finished), stopped = stopped_ && !trainer_->progress().finished;
  report_->End(cancelled ? absl::OkStatus() : finished, cancelled || stopped, checkpoint_path_);
  return finished;
}

}  // namespace

absl::Status RunFit(const FitOptions& options, ShutdownSignal* shutdown) {
  auto ranks =
      JoinRanks(options.config.train().device(), absl::Seconds(options.config.train().collective_timeout_seconds()));
  if (!ranks.ok()) return ranks.status();
  FitOptions resolved = options;
  v1::FitTrainConfig* const train = resolved.config.mutable_train();
  train->set_parts(PartsFor(*train, static_cast<uint32_t>(ranks->place.size)));
  const bool alone = ranks->place.size == 1;
  FitRun run(resolved, *std::move(ranks), shutdown);
  return alone ? run.Run() : AsLostRank(run.Run());
}

}  // namespace skein
