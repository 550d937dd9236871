// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/intake.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "trajectory/frame.h"

namespace skein {
namespace {

constexpr char kVoid[] = "its ticket was served already or is void";
constexpr uint64_t kSequenceLimit = uint64_t{1} << 32;  // Times a fragment's steps still far from overflow.

void Answer(v1::ReceiptResult result, absl::string_view why, v1::Receipt* receipt) {
  receipt->set_result(result);
  receipt->set_message(std::string(why));
}

// An actor's claimed time for a stage of one fragment, limited to plausible values: 0 if it is negative or not finite,
// at most an hour.
double PlausibleSeconds(double seconds) {
  constexpr double kMost = 3600;
  return std::isfinite(seconds) ? std::clamp(seconds, 0.0, kMost) : 0;
}

void AddPlausible(const v1::StageSeconds& added, v1::StageSeconds* seconds) {
  seconds->set_env_step(seconds->env_step() + PlausibleSeconds(added.env_step()));
  seconds->set_inference(seconds->inference() + PlausibleSeconds(added.inference()));
  seconds->set_build(seconds->build() + PlausibleSeconds(added.build()));
  seconds->set_wait(seconds->wait() + PlausibleSeconds(added.wait()));
}

}  // namespace

std::optional<Place> Intake::Decide(const ConnectionId& actor, const v1::FragmentHeader& header,
                                    const absl::Status& valid, bool sized, const TicketState& state,
                                    v1::Receipt* receipt) {
  if (ledger_->closed(actor)) {
    Answer(v1::RECEIPT_RESULT_STALE, "the step account of this connection is closed; its steps count as lost already",
           receipt);
    return std::nullopt;
  }
  if (header.sequence() <= ledger_->last_sequence(actor)) {
    Answer(v1::RECEIPT_RESULT_DUPLICATE, "this sequence was received before", receipt);
    return std::nullopt;
  }
  if (const absl::Status status = valid.ok() ? CheckHeader(actor, header) : valid; !status.ok()) {
    office_->Refuse(actor, header.ticket_id());
    // A malformed size must not enter the account: only a fragment of the right shape counts its steps.
    const uint64_t env_steps = sized ? std::min(EnvSteps(header), fragment_steps_) : 0;
    ledger_->Arrive(actor, header.sequence(), env_steps, 0, StepLedger::Fate::kRejected);
    Answer(v1::RECEIPT_RESULT_REJECTED, status.message(), receipt);
    return std::nullopt;
  }
  const auto stale = [&](absl::string_view why) {
    Book(actor, header, StepLedger::Fate::kStale);
    Answer(v1::RECEIPT_RESULT_STALE, why, receipt);
    return std::nullopt;
  };
  if (!mode_->MayAnswer(header.policy_version(), office_->PieceOf(header.ticket_id()))) {
    office_->Refuse(actor, header.ticket_id());
    return stale(kVoid);
  }
  const auto piece = office_->Accept(actor, header.ticket_id(), MonotonicNow());
  if (!piece) return stale(kVoid);
  const auto place = mode_->Assign(*piece, header.policy_version());
  if (!place.ok()) {
    office_->Commit(piece->group, state);
    mode_->OpenTickets();
    return stale(place.status().message());
  }
  AddPlausible(header.stage_seconds(), &place->staging->stage_seconds);
  if (place->segment == 0) {
    // What its ticket carried, unless the actor had to begin new episodes.
    const TicketState& began = office_->groups()[piece->group].state;
    const bool carried = began.policy_state.has_value() && header.restarted_episodes() == 0;
    place->staging->columns.PlaceFirstState(place->slot, carried ? &*began.policy_state : nullptr);
  }
  Book(actor, header, StepLedger::Fate::kAdmitted);
  receipt->set_result(v1::RECEIPT_RESULT_ACCEPTED);
  return *place;
}

void Intake::Finish(const Place& place, const v1::FragmentHeader& header, const absl::Status& placed, TicketState state,
                    v1::Receipt* receipt) {
  if (placed.ok()) {
    pool_->Placed(place);
    place.staging->failed_episodes += header.failed_episodes();
    office_->Commit(place.group, std::move(state));
  } else {
    mode_->TakeBack(place);
    ledger_->RejectAdmitted(EnvSteps(header));
    office_->Reopen(place.group);
    Answer(v1::RECEIPT_RESULT_REJECTED, placed.message(), receipt);
  }
  mode_->OpenTickets();
}

absl::Status Intake::CheckHeader(const ConnectionId& actor, const v1::FragmentHeader& header) const {
  if (header.sequence() > kSequenceLimit || header.env_steps_collected() > header.sequence() * fragment_steps_) {
    return absl::InvalidArgumentError(absl::StrCat("env_steps_collected: got ", header.env_steps_collected(),
                                                   " at sequence ", header.sequence(), ", want at most ",
                                                   fragment_steps_, " for each"));
  }
  const auto piece = office_->PieceOf(header.ticket_id());
  if (!piece) return absl::OkStatus();
  const uint32_t first_env = office_->groups().FirstEnv(piece->group);
  if (first_env != header.first_env()) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_env: got ", header.first_env(), ", the ticket has ", first_env));
  }
  if (!office_->GrantedTo(actor, header.ticket_id())) {
    return absl::InvalidArgumentError(
        absl::StrCat("ticket_id: ", header.ticket_id(), " was not granted to ", actor.actor_id));
  }
  return absl::OkStatus();
}

void Intake::Book(const ConnectionId& actor, const v1::FragmentHeader& header, StepLedger::Fate fate) {
  const uint64_t env_steps = EnvSteps(header);
  NoteClaim(actor, ledger_->Arrive(actor, header.sequence(), env_steps, header.env_steps_collected(), fate,
                                   fragment_steps_ - env_steps));
}

void Intake::NoteClaim(const ConnectionId& actor, uint64_t not_counted) {
  if (not_counted == 0) return;
  claims_.Warn(absl::StrCat(actor.actor_id, " (generation ", actor.generation, ") says that it has collected ",
                            not_counted, " env steps more than it had tickets for: they are not counted"));
}

}  // namespace skein
