// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/collector.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/process/clock.h"
#include "base/process/steady_wait.h"
#include "base/telemetry/history_recorder.h"
#include "base/telemetry/log.h"
#include "base/telemetry/printable.h"

namespace skein {
namespace {

constexpr char kVoid[] = "its ticket was served already or is void";
constexpr uint64_t kSequenceLimit = uint64_t{1} << 32;  // Times a fragment's steps still far from overflow.

void Record(const ActorKey& actor, const v1::TrajectoryBatch& header, const v1::Receipt& receipt) {
  if (!HistoryIsOn()) return;
  RecordHistory("batch", {{"actor", actor.actor_id},
                          {"generation", actor.generation},
                          {"sequence", uint64_t{header.sequence()}},
                          {"ticket", uint64_t{header.ticket_id()}},
                          {"env_steps", uint64_t{header.steps()} * header.num_envs()},
                          {"policy_version", uint64_t{header.policy_version()}},
                          {"result", absl::AsciiStrToLower(absl::StripPrefix(v1::ReceiptResult_Name(receipt.result()),
                                                                             "RECEIPT_RESULT_"))}});
}

// What an actor says that a stage of one fragment took, as far as it can be: nothing if it is negative or not finite,
// and an hour at most.
double PlausibleSeconds(double seconds) {
  constexpr double kMost = 3600;
  return std::isfinite(seconds) ? std::clamp(seconds, 0.0, kMost) : 0;
}

// As coordinators give them. What is checked here can be shown to people.
absl::Status CheckIdentity(const v1::Hello& hello) {
  constexpr size_t kLongestId = 64;
  const std::string& id = hello.actor_id();
  const bool plain = std::all_of(id.begin(), id.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (id.empty() || id.size() > kLongestId || !plain) {
    return absl::InvalidArgumentError(absl::StrCat("hello.actor_id: want 1 to ", kLongestId,
                                                   " printable characters and no spaces, got \"", Excerpt(id), "\""));
  }
  if (hello.generation() == 0) return absl::InvalidArgumentError("hello.generation: want 1 or more, got 0");
  return absl::OkStatus();
}

}  // namespace

Collector::Collector(const Options& options, LearnerMetrics* metrics)
    : run_id_(options.run_id),
      schema_(MakeSchema(options.shape)),
      fragment_steps_(static_cast<uint64_t>(schema_.shape.steps * schema_.shape.num_envs)),
      fragments_per_block_(options.fragments_per_block),
      metrics_(metrics),
      async_(options.async),
      ledger_(options.account, options.ranks > 1),
      office_({.num_envs = options.num_envs,
               .envs_per_group = static_cast<uint32_t>(options.shape.num_envs),
               .steps = static_cast<uint32_t>(options.shape.steps),
               .first_ticket_id = options.first_ticket_id,
               .rank = options.rank,
               .ranks = options.ranks,
               .first_env = options.first_env,
               .fragments = options.fragments_per_block}) {
  {
    absl::MutexLock lock(&mu_);
    MakeStagings();
  }
  if (options.env_state) office_.Restore({.env_state = options.env_state});
  ExportAccount();
  RecordHistory("learner", {{"rank", uint64_t{options.rank}}, {"trained", options.account.trained()}});
}

absl::StatusOr<v1::Welcome> Collector::Open(const v1::Hello& hello, const std::string& certificate) {
  if (absl::Status s = CheckProtocol(hello); !s.ok()) return s;
  if (hello.run_id() != run_id_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the actor belongs to run ", Excerpt(hello.run_id()), ", this learner to run ", run_id_));
  }
  if (absl::Status s = CheckIdentity(hello); !s.ok()) return s;
  if (absl::Status s = CheckEnvSpec(hello.env_spec(), schema_.shape.spec); !s.ok()) return s;
  const ActorKey key{hello.actor_id(), hello.generation(), certificate};
  absl::MutexLock lock(&mu_);
  if (!ledger_.HasRoomFor(key)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the books of ", ledger_.lives(), " actors' lives are open, which is the most"));
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

bool Collector::Knows(const ActorKey& actor) const {
  absl::MutexLock lock(&mu_);
  return ledger_.Knows(actor);
}

void Collector::CloseLife(const ActorKey& actor, uint64_t env_steps_collected) {
  uint64_t not_counted = 0;
  {
    absl::MutexLock lock(&mu_);
    office_.RemoveActor(actor);
    not_counted = ledger_.Depart(actor, env_steps_collected);
    metrics_->SetActors(office_.num_actors());
    ExportAccount();
  }
  NoteClaim(actor, not_counted);
}

void Collector::Disconnect(const ActorKey& actor) {
  absl::MutexLock lock(&mu_);
  office_.RemoveActor(actor);
  ledger_.Disconnect(actor, MonotonicNow());
  metrics_->SetActors(office_.num_actors());
}

void Collector::Depart(const ActorKey& actor, const v1::Goodbye& goodbye) {
  CloseLife(actor, goodbye.env_steps_collected());
}

void Collector::Book(const ActorKey& actor, const v1::TrajectoryBatch& header, StepLedger::Fate fate) {
  NoteClaim(actor, ledger_.Arrive(actor, header.sequence(), fragment_steps_, header.env_steps_collected(), fate));
}

void Collector::NoteClaim(const ActorKey& actor, uint64_t not_counted) {
  if (not_counted == 0) return;
  claims_.Warn(absl::StrCat(actor.actor_id, " (generation ", actor.generation, ") says that it has collected ",
                            not_counted, " env steps more than it had tickets for: they are not counted"));
}

absl::Status Collector::CheckHeader(const ActorKey& actor, const v1::TrajectoryBatch& header) const {
  if (header.sequence() > kSequenceLimit || header.env_steps_collected() > header.sequence() * fragment_steps_) {
    return absl::InvalidArgumentError(absl::StrCat("env_steps_collected: got ", header.env_steps_collected(),
                                                   " at sequence ", header.sequence(), ", want at most ",
                                                   fragment_steps_, " for each"));
  }
  const auto piece = office_.PieceOf(header.ticket_id());
  if (piece && office_.groups().FirstEnv(piece->group) != header.first_env()) {
    return absl::InvalidArgumentError(absl::StrCat("first_env: got ", header.first_env(), ", the ticket has ",
                                                   office_.groups().FirstEnv(piece->group)));
  }
  if (piece && !office_.GrantedTo(actor, header.ticket_id())) {
    return absl::InvalidArgumentError(
        absl::StrCat("ticket_id: ", header.ticket_id(), " was not granted to ", actor.actor_id));
  }
  return absl::OkStatus();
}

Collector::Staging* Collector::Begin() {
  if (!async_ && free_.empty()) ReleaseTraining();
  if (free_.empty()) {
    // Asynchronous: an iteration that ended early took room along that open tickets counted on.
    free_.push_back(stagings_.emplace_back(std::make_unique<Staging>(schema_, async_->fragments, 1)).get());
  }
  Staging* staging = free_.back();
  free_.pop_back();
  staging->batch.Reset();
  staging->assigned = staging->placed = 0;
  staging->vacated.clear();
  staging->policy_version = policy_version_;
  staging->stage_seconds.Clear();
  queue_.push_back(staging);
  return staging;
}

std::optional<Collector::Place> Collector::AssignAsync(uint64_t policy_version, uint64_t* lag) {
  // The first place that a fragment gave up, else the next one of the last staging, else the first of a new one.
  size_t at = 0;
  while (at < queue_.size() && queue_[at]->vacated.empty()) ++at;
  const bool vacated = at < queue_.size();
  if (!vacated && at > 0 && queue_[at - 1]->assigned < queue_[at - 1]->batch.fragments()) --at;
  // Each iteration ahead of it makes a version before it is trained on.
  *lag = next_version_ + at - policy_version;
  if (*lag > async_->max_policy_lag) return std::nullopt;
  Place place;
  place.staging = at < queue_.size() ? queue_[at] : Begin();
  if (vacated) {
    place.slot = place.staging->vacated.back();
    place.staging->vacated.pop_back();
  } else {
    place.slot = place.staging->assigned++;
  }
  place.staging->policy_version = std::min(place.staging->policy_version, policy_version);
  return place;
}

void Collector::TakeBack(const Place& place) {
  --place.staging->placing;
  ledger_.RejectAdmitted(fragment_steps_);
  office_.Reopen(place.block);
  if (async_) place.staging->vacated.push_back(static_cast<uint32_t>(place.slot));
  --queued_batches_;
}

void Collector::OpenTickets() {
  if (stopped_) return;
  int64_t room = static_cast<int64_t>(free_.size()) * async_->fragments - office_.groups().open_tickets();
  if (!queue_.empty()) room += queue_.back()->batch.fragments() - queue_.back()->assigned;
  for (const Staging* staging : queue_) room += static_cast<int64_t>(staging->vacated.size());
  if (room > 0) office_.OpenTickets(static_cast<uint32_t>(room));
}

void Collector::ReleaseTraining() {
  if (training_ != nullptr) free_.push_back(training_);
  training_ = nullptr;
}

std::optional<Collector::Place> Collector::Decide(const ActorKey& actor, const v1::TrajectoryBatch& header,
                                                  const absl::Status& valid, const CheckedFragment& checked,
                                                  v1::Receipt* receipt) {
  const absl::Duration now = MonotonicNow();
  const auto stale = [&](const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Book(actor, header, StepLedger::Fate::kStale);
    receipt->set_result(v1::RECEIPT_RESULT_STALE);
    receipt->set_message(why);
    return std::nullopt;
  };
  if (const absl::Status status = valid.ok() ? CheckHeader(actor, header) : valid; !status.ok()) {
    office_.Refuse(actor, header.ticket_id());
    // A malformed size must not enter the books: only a batch of the right shape counts its steps.
    const bool sized = header.steps() == schema_.shape.steps && header.num_envs() == schema_.shape.num_envs;
    ledger_.Arrive(actor, header.sequence(), sized ? fragment_steps_ : 0, 0, StepLedger::Fate::kRejected);
    receipt->set_result(v1::RECEIPT_RESULT_REJECTED);
    receipt->set_message(std::string(status.message()));
    return std::nullopt;
  }
  const uint64_t version = header.policy_version();
  auto piece = office_.PieceOf(header.ticket_id());
  if (async_ ? version > policy_version_ : piece && version != queue_[piece->iteration]->policy_version) {
    office_.Refuse(actor, header.ticket_id());
    return stale(kVoid);
  }
  piece = office_.Accept(actor, header.ticket_id(), now);
  if (!piece) return stale(kVoid);
  Place place;
  if (async_) {
    uint64_t lag = 0;
    const auto assigned = AssignAsync(version, &lag);
    if (!assigned) {
      office_.Commit(piece->group, {.env_state = checked.env_state});
      OpenTickets();
      return stale(
          absl::StrCat("its policy would be ", lag, " versions old, sync.max_policy_lag is ", async_->max_policy_lag));
    }
    place = *assigned;
  } else {
    place = {queue_[piece->iteration], piece->group, piece->group, piece->fragment};
  }
  place.block = piece->group;
  ++queued_batches_;
  ++place.staging->placing;
  v1::StageSeconds& seconds = place.staging->stage_seconds;
  const v1::StageSeconds& added = header.stage_seconds();
  seconds.set_env_step(seconds.env_step() + PlausibleSeconds(added.env_step()));
  seconds.set_inference(seconds.inference() + PlausibleSeconds(added.inference()));
  seconds.set_build(seconds.build() + PlausibleSeconds(added.build()));
  seconds.set_wait(seconds.wait() + PlausibleSeconds(added.wait()));
  Book(actor, header, StepLedger::Fate::kAdmitted);
  receipt->set_result(v1::RECEIPT_RESULT_ACCEPTED);
  return place;
}

v1::Receipt Collector::Receive(const ActorKey& actor, const Frame& frame, uint64_t bytes) {
  const v1::TrajectoryBatch& header = frame.header.batch();
  v1::Receipt receipt;
  receipt.set_sequence(header.sequence());
  const absl::Duration begin = MonotonicNow();
  CheckedFragment checked;
  const absl::Status valid = CheckFragment(frame, schema_, &checked);
  const absl::Duration received = MonotonicNow();

  std::optional<Place> place;
  {
    absl::MutexLock lock(&mu_);
    if (ledger_.closed(actor)) {
      receipt.set_result(v1::RECEIPT_RESULT_STALE);
      receipt.set_message("the books of this life are closed; its steps count as lost already");
    } else if (header.sequence() <= ledger_.last_sequence(actor)) {
      receipt.set_result(v1::RECEIPT_RESULT_DUPLICATE);
      receipt.set_message("this sequence was received before");
    } else {
      place = Decide(actor, header, valid, checked, &receipt);
    }
    ExportAccount();
  }
  metrics_->AddStage(LearnerMetrics::Stage::kReceive, received - begin);
  if (place) {
    // The place is this call's alone until it is committed, so the copy needs no lock.
    const absl::Status placed = place->staging->batch.Place(place->slot, place->segment, checked);
    absl::MutexLock lock(&mu_);
    if (placed.ok()) {
      --place->staging->placing;
      ++place->staging->placed;
      if (Complete()) owed_since_.reset();
      office_.Commit(place->block, {.env_state = std::move(checked.env_state)});
    } else {
      TakeBack(*place);
      ExportAccount();
      receipt.set_result(v1::RECEIPT_RESULT_REJECTED);
      receipt.set_message(std::string(placed.message()));
      metrics_->CountQuarantinedBatch();
    }
    if (async_) OpenTickets();
    metrics_->AddStage(LearnerMetrics::Stage::kAdmit, MonotonicNow() - received);
  }
  metrics_->CountBatch(receipt.result(), bytes, checked.saved_bytes);
  Record(actor, header, receipt);
  if (receipt.result() == v1::RECEIPT_RESULT_REJECTED) {
    spdlog::warn("batch {} of {} rejected: {}", header.sequence(), Printable(actor.actor_id),
                 Printable(receipt.message()));
  }
  return receipt;
}

std::vector<std::pair<ActorKey, v1::Ticket>> Collector::TakeGrants() {
  absl::MutexLock lock(&mu_);
  if (stopped_) return {};
  auto grants = office_.Grant(MonotonicNow());
  for (const auto& [actor, ticket] : grants) ledger_.Grant(actor, fragment_steps_);
  metrics_->SetRestartedEpisodes(office_.groups().restarted_episodes());
  return grants;
}

void Collector::OpenIteration(uint64_t policy_version) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  policy_version_ = next_version_ = policy_version;
  if (async_) {
    ReleaseTraining();
    OpenTickets();
  } else {
    Begin();
    office_.OpenIteration(policy_version);
  }
  if (!owed_since_ && !Complete()) owed_since_ = MonotonicNow();
}

void Collector::Published(uint64_t policy_version) {
  absl::MutexLock lock(&mu_);
  if (async_) policy_version_ = next_version_ = policy_version;
}

std::optional<Collector::Iteration> Collector::WaitForIteration(absl::Duration timeout) {
  Iteration iteration;
  {
    absl::MutexLock lock(&mu_);
    if (!async_) ReleaseTraining();
    AwaitFor(&mu_, absl::Condition(this, &Collector::Complete), timeout);
    if (stopped_ || !Complete()) return std::nullopt;
    iteration = TakeFront().first;
  }
  iteration.batch->Seal();
  return iteration;
}

std::optional<Collector::Iteration> Collector::TakeWhatIsThere() {
  std::pair<Iteration, std::vector<int64_t>> taken;
  {
    absl::MutexLock lock(&mu_);
    if (!async_) ReleaseTraining();
    mu_.Await(absl::Condition(this, &Collector::Settled));
    if (stopped_) return std::nullopt;
    if (queue_.empty()) Begin();  // Asynchronous, and nothing has come.
    taken = TakeFront();
    ExportAccount();
  }
  auto& [iteration, slots] = taken;
  iteration.batch->Keep(std::move(slots));
  iteration.batch->Seal();
  return iteration;
}

std::pair<Collector::Iteration, std::vector<int64_t>> Collector::TakeFront() {
  training_ = queue_.front();
  queue_.pop_front();
  next_version_ = policy_version_ + 1;
  std::vector<int64_t> slots;
  if (async_) {
    slots = training_->PlacedSlots();
  } else {
    for (uint32_t block : office_.EndIteration()) slots.push_back(block);
    const uint64_t unusable = training_->placed - slots.size() * fragments_per_block_;
    ledger_.DropStale(unusable * fragment_steps_);
    queued_batches_ -= unusable;
    if (!queue_.empty() && !owed_since_ && !Complete()) owed_since_ = MonotonicNow();
  }
  Iteration iteration;
  iteration.batch = &training_->batch;
  iteration.policy_version = training_->policy_version;
  if (auto state = office_.groups().State()) iteration.env_state = std::move(state->env_state);
  iteration.stage_seconds = training_->stage_seconds;
  return {std::move(iteration), std::move(slots)};
}

void Collector::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  owed_since_.reset();
  office_.CloseIteration();
}

void Collector::Trained(uint64_t env_steps) {
  absl::MutexLock lock(&mu_);
  ledger_.Trained(env_steps);
  queued_batches_ -= env_steps / fragment_steps_;
  ExportAccount();
  RecordHistory("trained", {{"env_steps", env_steps}});
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
  metrics_->SetQueue(queued_batches_, room_);
}

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

absl::Duration Collector::waiting() const {
  absl::MutexLock lock(&mu_);
  return owed_since_ ? MonotonicNow() - *owed_since_ : absl::ZeroDuration();
}

std::string Collector::HoldersForPeople() const {
  absl::MutexLock lock(&mu_);
  return absl::StrJoin(office_.Holders(), ", ", [](std::string* out, const auto& holder) {
    absl::StrAppend(out, holder.first.actor_id, " (", holder.second, ")");
  });
}

}  // namespace skein
