// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/collector.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/process/clock.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/history_recorder.h"
#include "base/telemetry/log.h"
#include "base/telemetry/printable.h"
#include "learner/collect/asynchronous_collect.h"
#include "learner/collect/direction_collect.h"
#include "learner/collect/hello_check.h"
#include "learner/collect/synchronous_collect.h"

namespace skein {
namespace {

void Record(const ConnectionId& actor, const v1::FragmentHeader& header, const v1::Receipt& receipt) {
  if (!HistoryIsOn()) return;
  RecordHistory("batch", {{"actor", actor.actor_id},
                          {"generation", actor.generation},
                          {"sequence", uint64_t{header.sequence()}},
                          {"ticket", uint64_t{header.ticket_id()}},
                          {"env_steps", EnvSteps(header)},
                          {"policy_version", uint64_t{header.policy_version()}},
                          {"result", absl::AsciiStrToLower(absl::StripPrefix(v1::ReceiptResult_Name(receipt.result()),
                                                                             "RECEIPT_RESULT_"))}});
}

std::unique_ptr<CollectMode> MakeMode(const Collector::Options& options, TicketOffice* office, StagingPool* pool) {
  if (options.shape.of_directions()) {
    const auto most_steps = static_cast<uint32_t>(options.shape.max_episode_steps);
    return std::make_unique<DirectionCollect>(options.directions, most_steps, office, pool);
  }
  if (options.async) return std::make_unique<AsynchronousCollect>(options.async->max_policy_lag, office, pool);
  return std::make_unique<SynchronousCollect>(options.fragments_per_group, office, pool);
}

}  // namespace

Collector::Collector(const Options& options, LearnerMetrics* metrics)
    : run_id_(options.run_id),
      schema_(MakeSchema(options.shape)),
      metrics_(metrics),
      ledger_(options.account, options.ranks > 1),
      office_({.share_envs = options.share_envs,
               .envs_per_group = static_cast<uint32_t>(options.shape.group_envs),
               .steps = static_cast<uint32_t>(options.shape.steps),
               .first_ticket_id = options.first_ticket_id,
               .rank = options.rank,
               .ranks = options.ranks,
               .first_env = options.first_env,
               .fragments = options.fragments_per_group,
               .relocatable = options.shape.spec.relocatable() || options.shape.of_directions()}),
      pool_(schema_),
      mode_(MakeMode(options, &office_, &pool_)),
      intake_(static_cast<uint64_t>(schema_.shape.most_env_steps()), &ledger_, &office_, &pool_, mode_.get()) {
  absl::MutexLock lock(&mu_);
  mode_->TakeShare(options.async ? options.async->fragments : 0);
  if (!options.state.empty()) office_.Restore(options.state);
  ExportAccount();
  RecordHistory("learner", {{"rank", uint64_t{options.rank}}, {"trained", options.account.trained()}});
}

absl::StatusOr<v1::Welcome> Collector::Open(const v1::Hello& hello, const std::string& certificate) {
  if (absl::Status s = CheckHello(hello, run_id_, schema_.shape.spec); !s.ok()) return s;
  const ConnectionId key{hello.actor_id(), hello.generation(), certificate};
  absl::MutexLock lock(&mu_);
  if (!ledger_.HasRoomFor(key)) {
    return absl::ResourceExhaustedError(absl::StrCat("the step accounts of ", ledger_.connections(),
                                                     " actors' connections are open, which is the most"));
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

bool Collector::Knows(const ConnectionId& actor) const {
  absl::MutexLock lock(&mu_);
  return ledger_.Knows(actor);
}

void Collector::Close(const ConnectionId& actor, uint64_t env_steps_collected) {
  absl::MutexLock lock(&mu_);
  office_.RemoveActor(actor);
  intake_.NoteClaim(actor, ledger_.Depart(actor, env_steps_collected));
  metrics_->SetActors(office_.num_actors());
  ExportAccount();
}

void Collector::Disconnect(const ConnectionId& actor) {
  absl::MutexLock lock(&mu_);
  office_.RemoveActor(actor);
  ledger_.Disconnect(actor, MonotonicNow());
  metrics_->SetActors(office_.num_actors());
}

v1::Receipt Collector::Receive(const ConnectionId& actor, const Frame& frame, uint64_t bytes) {
  const v1::FragmentHeader& header = frame.header.fragment();
  v1::Receipt receipt;
  receipt.set_sequence(header.sequence());
  const absl::Duration begin = MonotonicNow();
  CheckedFragment checked;
  const absl::Status valid = CheckFragment(frame, schema_, &checked);
  const absl::Duration received = MonotonicNow();

  const bool sized = header.steps() == schema_.shape.steps && header.group_envs() == schema_.shape.group_envs;
  std::optional<Place> place;
  {
    absl::MutexLock lock(&mu_);
    place = intake_.Decide(actor, header, valid, sized, checked.state, &receipt);
    if (place && !office_.groups().relocatable()) restarted_by_actors_ += header.restarted_episodes();
    ExportAccount();
    if (!place) Record(actor, header, receipt);
  }
  metrics_->AddStage(LearnerMetrics::Stage::kReceive, received - begin);
  if (place) {
    // The place is this call's alone until it is finished, so the copy needs no lock.
    const absl::Status placed = place->staging->columns.Place(place->slot, place->segment, checked);
    absl::MutexLock lock(&mu_);
    intake_.Finish(*place, header, placed, std::move(checked.state), &receipt);
    if (placed.ok() && Complete()) owed_since_.reset();
    if (!placed.ok()) {
      ExportAccount();
      metrics_->CountQuarantinedFragment();
    }
    metrics_->AddStage(LearnerMetrics::Stage::kAdmit, MonotonicNow() - received);
    Record(actor, header, receipt);  // Before anyone can take the iteration that this makes whole.
  }
  metrics_->CountFragment(receipt.result(), bytes, checked.saved_bytes);
  if (receipt.result() == v1::RECEIPT_RESULT_REJECTED) {
    spdlog::warn("fragment {} of {} rejected: {}", header.sequence(), Printable(actor.actor_id),
                 Printable(receipt.message()));
  }
  return receipt;
}

TicketOffice::Grants Collector::TakeGrants() {
  absl::MutexLock lock(&mu_);
  if (stopped_) return {};
  auto grants = office_.Grant(MonotonicNow());
  for (auto& [actor, ticket] : grants) {
    mode_->Complete(&ticket);
    intake_.Grant(actor);
  }
  metrics_->SetRestartedEpisodes(office_.groups().restarted_episodes() + restarted_by_actors_);
  return grants;
}

void Collector::OpenIteration(uint64_t policy_version, const WorkSettings& settings) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  mode_->OpenIteration(policy_version, settings);
  if (!owed_since_ && !Complete()) owed_since_ = MonotonicNow();
}

void Collector::Published(uint64_t policy_version) {
  absl::MutexLock lock(&mu_);
  mode_->Published(policy_version);
}

std::optional<Collector::Iteration> Collector::WaitForIteration(absl::Duration timeout) {
  Iteration iteration;
  {
    absl::MutexLock lock(&mu_);
    mode_->BeforeWait();
    AwaitFor(&mu_, absl::Condition(this, &Collector::Complete), timeout);
    if (stopped_ || !Complete()) return std::nullopt;
    std::vector<int64_t> all;
    iteration = TakeFront(&all);
  }
  iteration.batch->Seal();
  return iteration;
}

std::optional<Collector::Iteration> Collector::TakeWhatIsThere() {
  Iteration iteration;
  std::vector<int64_t> slots;
  {
    absl::MutexLock lock(&mu_);
    mode_->BeforeWait();
    mu_.Await(absl::Condition(this, &Collector::Settled));
    if (stopped_) return std::nullopt;
    iteration = TakeFront(&slots);
    ExportAccount();
  }
  iteration.batch->Keep(std::move(slots));
  iteration.batch->Seal();
  return iteration;
}

Collector::Iteration Collector::TakeFront(std::vector<int64_t>* slots) {
  CollectMode::Front front = mode_->TakeFront();
  fragments_taken_ = front.staging->placed - front.unusable;
  intake_.DropUnusable(front.unusable);
  pool_.Forget(front.unusable);
  if (front.next_is_open && !owed_since_ && !Complete()) owed_since_ = MonotonicNow();
  *slots = std::move(front.slots);
  Iteration iteration;
  iteration.batch = &front.staging->columns;
  iteration.policy_version = front.staging->policy_version;
  iteration.state = office_.groups().State();
  iteration.stage_seconds = front.staging->stage_seconds;
  iteration.failed_episodes = front.staging->failed_episodes;
  return iteration;
}

void Collector::TakeShare(const Share& share) {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &Collector::NothingIsCopied));
  office_.TakeShare(share.first_env, share.share_envs);
  if (!share.state.empty()) office_.Restore(share.state);
  ledger_.DropAdmitted();
  owed_since_.reset();
  mode_->TakeShare(share.async_fragments);
  ExportAccount();
}

void Collector::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  owed_since_.reset();
  mode_->Stop();
}

void Collector::Trained(uint64_t env_steps) {
  absl::MutexLock lock(&mu_);
  ledger_.Trained(env_steps);
  pool_.Forget(std::exchange(fragments_taken_, 0));
  ExportAccount();
  RecordHistory("trained", {{"env_steps", env_steps}});
}

void Collector::CloseSilent(absl::Duration grace) {
  absl::MutexLock lock(&mu_);
  ledger_.CloseSilent(MonotonicNow(), grace);
  ExportAccount();
}

v1::StepAccount Collector::CloseAccounts() {
  absl::MutexLock lock(&mu_);
  ledger_.CloseAll();
  ExportAccount();
  const v1::StepAccount account = ledger_.account();
  RecordHistory("account", {{"collected", account.collected()},
                            {"trained", account.trained()},
                            {"stale", account.stale()},
                            {"rejected", account.rejected()},
                            {"lost", account.lost()},
                            {"pending", account.pending()}});
  return account;
}

void Collector::ExportAccount() {
  metrics_->SetAccount(ledger_.account(), ledger_.imbalance());
  metrics_->SetQueue(pool_.admitted(), pool_.room());
}

v1::StepAccount Collector::account() const {
  absl::MutexLock lock(&mu_);
  return ledger_.account();
}

int Collector::actors() const {
  absl::MutexLock lock(&mu_);
  return office_.num_actors();
}

uint64_t Collector::queued_fragments() const {
  absl::MutexLock lock(&mu_);
  return pool_.admitted();
}

absl::Duration Collector::waiting() const {
  absl::MutexLock lock(&mu_);
  return owed_since_ ? MonotonicNow() - *owed_since_ : absl::ZeroDuration();
}

std::string Collector::DescribeHolders() const {
  absl::MutexLock lock(&mu_);
  return absl::StrJoin(office_.Holders(), ", ", [](std::string* out, const auto& holder) {
    absl::StrAppend(out, holder.first.actor_id, " (", holder.second, ")");
  });
}

}  // namespace skein
