// SPDX-License-Identifier: Apache-2.0
#include "learner/collector.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/grpc_transport.h"
#include "base/log.h"

namespace skein {
namespace {

constexpr uint64_t kSequenceLimit = uint64_t{1} << 32;  // Times a fragment's steps still far from overflow.

}  // namespace

Collector::Collector(const Options& options, LearnerMetrics* metrics)
    : run_id_(options.run_id),
      shape_(options.shape),
      metrics_(metrics),
      ledger_(options.account),
      office_(options.num_envs, static_cast<uint32_t>(options.shape.num_envs),
              static_cast<uint32_t>(options.shape.steps), options.first_ticket_id) {
  for (auto& staged : staged_) staged = std::make_unique<StagedBatch>(shape_, office_.num_blocks());
  if (options.env_state) office_.RestoreEnvState(*options.env_state);
  ExportAccount();
}

absl::StatusOr<v1::Welcome> Collector::Open(const v1::Hello& hello) {
  if (hello.protocol_major() != kProtocolMajor) {
    return absl::FailedPreconditionError(absl::StrCat("protocol ", hello.protocol_major(), ".", hello.protocol_minor(),
                                                      " of the actor and ", kProtocolMajor, ".", kProtocolMinor,
                                                      " of the learner differ in their major version"));
  }
  if (hello.run_id() != run_id_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the actor belongs to run ", hello.run_id(), ", this learner to run ", run_id_));
  }
  if (absl::Status s = CheckEnvSpec(hello.env_spec(), shape_.spec); !s.ok()) return s;
  const ActorKey key{hello.actor_id(), hello.generation()};
  absl::MutexLock lock(&mu_);
  if (hello.previous_generation() != 0) {
    const ActorKey previous{hello.previous_actor_id(), hello.previous_generation()};
    office_.RemoveActor(previous);  // Its stream may not have noticed yet that it is dead.
    ledger_.Depart(previous, hello.previous_env_steps_collected());
    ExportAccount();
  }
  if (!ledger_.Open(key)) {
    return absl::AbortedError(absl::StrCat("stale generation ", key.generation, " of ", key.actor_id,
                                           ": it was silent for too long and must join again"));
  }
  office_.AddActor(key, hello.ticket_credits(), hello.runners());
  metrics_->SetActors(office_.num_actors());
  v1::Welcome welcome;
  welcome.set_last_sequence(ledger_.last_sequence(key));
  return welcome;
}

void Collector::Disconnect(const ActorKey& actor) {
  absl::MutexLock lock(&mu_);
  office_.RemoveActor(actor);
  ledger_.Disconnect(actor, MonotonicNow());
  metrics_->SetActors(office_.num_actors());
}

void Collector::Depart(const ActorKey& actor, const v1::Goodbye& goodbye) {
  absl::MutexLock lock(&mu_);
  office_.RemoveActor(actor);
  ledger_.Depart(actor, goodbye.env_steps_collected());
  metrics_->SetActors(office_.num_actors());
  ExportAccount();
}

absl::Status Collector::CheckHeader(const v1::TrajectoryBatch& batch) const {
  const uint64_t fragment_steps = static_cast<uint64_t>(shape_.steps * shape_.num_envs);
  if (batch.sequence() > kSequenceLimit || batch.env_steps_collected() > batch.sequence() * fragment_steps) {
    return absl::InvalidArgumentError(absl::StrCat("env_steps_collected: got ", batch.env_steps_collected(),
                                                   " at sequence ", batch.sequence(), ", want at most ", fragment_steps,
                                                   " for each"));
  }
  const std::optional<uint32_t> block = office_.BlockOf(batch.ticket_id());
  if (block && uint64_t{*block} * static_cast<uint64_t>(shape_.num_envs) != batch.first_env()) {
    return absl::InvalidArgumentError(absl::StrCat("first_env: got ", batch.first_env(), ", the ticket has ",
                                                   uint64_t{*block} * static_cast<uint64_t>(shape_.num_envs)));
  }
  return absl::OkStatus();
}

v1::Receipt Collector::Receive(const ActorKey& actor, const v1::TrajectoryBatch& batch) {
  v1::Receipt receipt;
  receipt.set_sequence(batch.sequence());
  const absl::Duration begin = MonotonicNow();
  CheckedBatch checked;
  const absl::Status valid = CheckBatch(batch, shape_, &checked);
  const absl::Duration received = MonotonicNow();
  const uint64_t env_steps = uint64_t{batch.steps()} * batch.num_envs();

  std::optional<uint32_t> block;
  StagedBatch* staged = nullptr;
  {
    absl::MutexLock lock(&mu_);
    if (ledger_.closed(actor)) {
      receipt.set_result(v1::RECEIPT_RESULT_STALE);
      receipt.set_message("the books of this life are closed; its steps count as lost already");
    } else if (batch.sequence() <= ledger_.last_sequence(actor)) {
      receipt.set_result(v1::RECEIPT_RESULT_DUPLICATE);
      receipt.set_message("this sequence was received before");
    } else if (const absl::Status header = valid.ok() ? CheckHeader(batch) : valid; !header.ok()) {
      office_.Refuse(batch.ticket_id());
      // A malformed size must not enter the books: only a batch of the right shape counts its steps.
      const bool sized = batch.steps() == shape_.steps && batch.num_envs() == shape_.num_envs;
      ledger_.Arrive(actor, batch.sequence(), sized ? env_steps : 0, 0, StepLedger::Fate::kRejected);
      receipt.set_result(v1::RECEIPT_RESULT_REJECTED);
      receipt.set_message(std::string(header.message()));
    } else if (batch.policy_version() != policy_version_ || !(block = office_.Redeem(batch.ticket_id()))) {
      office_.Refuse(batch.ticket_id());  // Open still if only the version was wrong.
      ledger_.Arrive(actor, batch.sequence(), env_steps, batch.env_steps_collected(), StepLedger::Fate::kStale);
      receipt.set_result(v1::RECEIPT_RESULT_STALE);
      receipt.set_message("its ticket was served already or is void");
    } else {
      ledger_.Arrive(actor, batch.sequence(), env_steps, batch.env_steps_collected(), StepLedger::Fate::kAdmitted);
      receipt.set_result(v1::RECEIPT_RESULT_ACCEPTED);
      ++queued_batches_;
      stage_seconds_.set_env_step(stage_seconds_.env_step() + batch.stage_seconds().env_step());
      stage_seconds_.set_inference(stage_seconds_.inference() + batch.stage_seconds().inference());
      stage_seconds_.set_build(stage_seconds_.build() + batch.stage_seconds().build());
      stage_seconds_.set_wait(stage_seconds_.wait() + batch.stage_seconds().wait());
      staged = staged_[filling_].get();
    }
    metrics_->CountBatch(receipt.result(), batch.ByteSizeLong());
    ExportAccount();
  }
  metrics_->AddStage(LearnerMetrics::Stage::kReceive, received - begin);
  if (receipt.result() == v1::RECEIPT_RESULT_REJECTED) {
    spdlog::warn("batch {} of {} rejected: {}", batch.sequence(), actor.actor_id, receipt.message());
  }
  if (block) {
    // The block is this call's alone until it is committed, so the copy needs no lock.
    staged->Place(*block, checked);
    absl::MutexLock lock(&mu_);
    office_.Commit(*block, *checked.env_state);
    metrics_->AddStage(LearnerMetrics::Stage::kAdmit, MonotonicNow() - received);
  }
  return receipt;
}

std::vector<std::pair<ActorKey, v1::Ticket>> Collector::TakeGrants() {
  absl::MutexLock lock(&mu_);
  if (stopped_) return {};
  return office_.Grant();
}

void Collector::OpenIteration(uint64_t policy_version) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  filling_ = 1 - filling_;
  policy_version_ = policy_version;
  stage_seconds_.Clear();
  office_.OpenIteration(policy_version);
  open_ = true;
}

std::optional<Collector::Iteration> Collector::WaitForIteration(absl::Duration timeout) {
  Iteration iteration;
  {
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(this, &Collector::Complete), timeout);
    if (stopped_ || !open_ || !office_.complete()) return std::nullopt;
    open_ = false;
    iteration.batch = staged_[filling_].get();
    iteration.policy_version = policy_version_;
    iteration.env_state = *office_.EnvState();
    iteration.stage_seconds = stage_seconds_;
  }
  iteration.batch->Seal();
  return iteration;
}

void Collector::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  office_.CloseIteration();
}

void Collector::Trained(uint64_t env_steps) {
  absl::MutexLock lock(&mu_);
  ledger_.Trained(env_steps);
  queued_batches_ -= office_.num_blocks();
  ExportAccount();
}

void Collector::CloseSilent(absl::Duration grace) {
  absl::MutexLock lock(&mu_);
  ledger_.CloseSilent(MonotonicNow(), grace);
  ExportAccount();
}

v1::StepAccount Collector::CloseBooks() {
  absl::MutexLock lock(&mu_);
  ledger_.CloseAll();
  ExportAccount();
  return ledger_.account();
}

void Collector::ExportAccount() { metrics_->SetAccount(ledger_.account(), ledger_.imbalance()); }

v1::StepAccount Collector::account() const {
  absl::MutexLock lock(&mu_);
  return ledger_.account();
}

int Collector::actors() const {
  absl::MutexLock lock(&mu_);
  return office_.num_actors();
}

uint64_t Collector::queued_batches() const {
  absl::MutexLock lock(&mu_);
  return queued_batches_;
}

std::string Collector::HoldersForPeople() const {
  absl::MutexLock lock(&mu_);
  return absl::StrJoin(office_.Holders(), ", ", [](std::string* out, const auto& holder) {
    absl::StrAppend(out, holder.first.actor_id, " (", holder.second, ")");
  });
}

}  // namespace skein
