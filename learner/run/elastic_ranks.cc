// SPDX-License-Identifier: Apache-2.0
#include "learner/run/elastic_ranks.h"

#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/net/host_port.h"
#include "base/process/clock.h"
#include "base/telemetry/log.h"

namespace skein {
namespace {

// How long the first rank to start waits for the last; and how long ranks that have trained wait for others to return.
constexpr absl::Duration kStart = absl::Minutes(2), kReturn = absl::Minutes(10);
// How often the leader of a group that is not complete looks for ranks that want to join, and how long that may take.
constexpr absl::Duration kRollPeriod = absl::Seconds(1), kRollDeadline = absl::Milliseconds(300);

}  // namespace

ElasticRanks::ElasticRanks(const RunContext& context, std::function<void(const std::string&)> on_look)
    : context_(context),
      on_look_(std::move(on_look)),
      incarnation_(std::random_device()()),
      leads_(context.options.ranks == 1),
      reports_(context.options.ranks == 1),
      roll_(context.options.coordinator) {}

absl::StatusOr<RankFormation> ElasticRanks::Meet(uint64_t iteration, const std::vector<uint32_t>& incarnations) {
  const LearnerOptions& options = context_.options;
  FormingOptions forming;
  forming.rank = options.rank;
  forming.ranks = options.ranks;
  forming.min_ranks = LeastRanks(context_.config.learner().min_ranks(), options.ranks);
  forming.tired_after = absl::Seconds(context_.config.coordinator().barrier_timeout_seconds());
  forming.limit = is_new() ? kStart : kReturn;
  forming.stopping = [this] { return context_.stopping(); };
  forming.on_look = [this](const RankFormation& formation) {
    // Ranks that have just started know nothing of the run yet.
    reports_ = formation.members.front().rank() == context_.options.rank && (formation.has_state || formation.blocked);
    on_look_(formation.blocked ? formation.missing_text : "");
  };
  v1::RankOffer mine;
  mine.set_rank(options.rank);
  mine.set_incarnation(incarnation_);
  mine.set_group(group_number_);
  mine.mutable_incarnations()->Add(incarnations.begin(), incarnations.end());
  mine.set_iteration(iteration);
  mine.set_attempted(attempted_);
  spdlog::info("rank {} of {} meets the others", options.rank, options.ranks);
  auto formation = MeetToForm(forming, mine, context_.coordinator);
  if (!formation.ok()) return formation;
  if (formation->kind == RankFormation::Kind::kLeftBehind) {
    return absl::AbortedError(absl::StrCat("the other ranks have gone on without rank ", options.rank,
                                           ", which was silent: start it again, and it joins them"));
  }
  attempted_ = formation->number;
  return formation;
}

absl::Status ElasticRanks::Form(const RankFormation& formation) {
  const LearnerOptions& options = context_.options;
  const v1::RunConfig& config = context_.config;
  RankGroup::Options group;
  group.size = static_cast<int>(formation.members.size());
  while (formation.members[static_cast<size_t>(group.rank)].rank() != options.rank) ++group.rank;
  group.number = formation.number;
  group.announce_host = options.announce_host;
  group.device = options.device.empty() ? config.learner().device() : options.device;
  group.local_rank = static_cast<int>(options.local_rank);
  group.coordinator = FirstAddress(options.coordinator);
  group.form_timeout = group.meeting_timeout = absl::Seconds(config.coordinator().barrier_timeout_seconds());
  group.timeout = absl::Seconds(config.learner().collective_timeout_seconds());
  group.stopping = [this] { return context_.shutdown->signalled(); };
  group.others = [this] { return CheckOthers(); };
  auto formed = RankGroup::Form(group, context_.coordinator);
  if (!formed.ok()) return formed.status();
  group_ = *std::move(formed);
  there_.clear();
  for (const v1::RankOffer& member : formation.members) there_.insert(member.rank());
  leads_ = reports_ = group.rank == 0;
  const auto answer = roll_.Call(kRollDeadline);
  formed_with_ = answer.ok() ? std::optional(*answer) : std::nullopt;
  return absl::OkStatus();
}

bool ElasticRanks::RankWantsToJoin() {
  if (!leads_ || there_.size() == context_.options.ranks) return false;
  const absl::Duration now = MonotonicNow();
  if (now < next_roll_) return rank_wants_to_join_;
  next_roll_ = now + kRollPeriod;
  const auto live = roll_.Call(kRollDeadline);
  rank_wants_to_join_ = live.ok() && absl::c_any_of(live->processes, [this](const auto& process) {
                          return there_.count(process.first) == 0;
                        });
  return rank_wants_to_join_;
}

absl::Status ElasticRanks::CheckOthers() {
  const auto now = roll_.Call(kRollDeadline);
  if (!now.ok() || !formed_with_) return absl::OkStatus();
  const auto leaver = FindLeaver(*formed_with_, *now, there_);
  if (!leaver) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("learner rank ", *leaver, " has left the run"));
}

absl::StatusOr<RankDecision> ElasticRanks::Agree(std::optional<int64_t> columns, absl::Duration idle) {
  v1::RankRound mine;
  mine.set_ready(columns.has_value());
  mine.set_columns(columns.value_or(0));
  mine.set_idle_seconds(absl::ToDoubleSeconds(idle));
  mine.set_stop(context_.shutdown->signalled());
  mine.set_rank_wants_to_join(RankWantsToJoin());
  const auto rounds = group_->Meet(mine);
  if (!rounds.ok()) return rounds.status();
  return Decide(*rounds, group_->rank(), absl::Seconds(context_.config.learner().shortfall_seconds()));
}

absl::StatusOr<v1::RankIteration> ElasticRanks::HearFirst(v1::RankIteration mine) {
  if (group_ == nullptr) return mine;
  auto all = group_->Gather(mine);
  if (!all.ok()) return all.status();
  return std::move(all->front());
}

}  // namespace skein
