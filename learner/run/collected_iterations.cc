// SPDX-License-Identifier: Apache-2.0
#include "learner/run/collected_iterations.h"

#include <algorithm>
#include <utility>

#include "base/config/algorithm_rules.h"
#include "base/config/direction_rules.h"
#include "base/config/phases.h"
#include "base/process/clock.h"
#include "base/telemetry/log.h"
#include "learner/collect/direction_returns.h"
#include "learner/collect/fragment_shape.h"

namespace skein {
namespace {

using Stage = LearnerMetrics::Stage;

// How often late tickets are granted again while an iteration is awaited.
constexpr absl::Duration kLateTickets = absl::Milliseconds(20);
// As an update begins at that many env steps.
double Progress(const v1::RunConfig& config, uint64_t env_steps) {
  return static_cast<double>(env_steps) / static_cast<double>(config.total_steps());
}

// How often the log says what is awaited.
constexpr absl::Duration kTell = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<CollectedIterations>> CollectedIterations::Make(
    const RunContext& context, const EnvShare& share, const TicketState& state, ElasticRanks* ranks,
    RunAccounts* accounts, RunReport* report, LearnerService* service) {
  const v1::RolloutConfig& rollout = context.config.rollout();
  auto shape = MakeFragmentShape(context.config);
  if (!shape.ok()) return shape.status();
  if (absl::Status status = CheckEnvState(state, *shape); !status.ok()) return status;
  const int64_t fragment_steps = shape->steps * shape->group_envs;
  std::unique_ptr<CollectedIterations> made(new CollectedIterations(context, *shape, ranks, report, service));

  Collector::Options collect;
  collect.run_id = context.run_id;
  collect.shape = *shape;
  collect.first_env = share.first_env;
  collect.share_envs = share.share_envs;
  collect.rank = context.options.rank;
  collect.ranks = context.options.ranks;
  const int64_t fragments = rollout.steps_per_iteration() / fragment_steps;
  if (context.config.sync().mode() == v1::SYNC_MODE_ASYNC) {
    collect.async = Collector::Async{made->AsyncFragments(share), context.config.sync().max_policy_lag()};
  } else {
    collect.fragments_per_group = static_cast<uint32_t>(fragments * shape->group_envs / rollout.num_envs());
  }
  // Above the ids of any earlier process of this run: those count up from an earlier millisecond.
  collect.first_ticket_id = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())) << 20;
  collect.directions = context.config.directions();
  collect.account = accounts->own();
  collect.state = state;
  made->collector_ = std::make_unique<Collector>(collect, context.metrics);
  accounts->Follow(made->collector_.get());
  return made;
}

CollectedIterations::CollectedIterations(const RunContext& context, const FragmentShape& shape, ElasticRanks* ranks,
                                         RunReport* report, LearnerService* service)
    : context_(context),
      shape_(shape),
      fragment_steps_(shape.steps * shape.group_envs),
      ranks_(*ranks),
      report_(*report),
      service_(*service),
      publisher_(context.metrics) {}

uint32_t CollectedIterations::AsyncFragments(const EnvShare& share) const {
  const v1::RolloutConfig& rollout = context_.config.rollout();
  const int64_t fragments = rollout.steps_per_iteration() / fragment_steps_;
  // In proportion to the share, so that ranks whose actors are equally fast are done at the same time.
  return static_cast<uint32_t>(std::max<int64_t>(1, fragments * share.share_envs / rollout.num_envs()));
}

void CollectedIterations::Serve() {
  service_.Serve(context_.run_id, collector_.get(), &publisher_,
                 absl::Seconds(context_.config.coordinator().lease_seconds()));
}

void CollectedIterations::Finish(bool over) {
  if (over) service_.Finish();
  publisher_.Finish();
  if (over) service_.WaitUntilIdle(absl::Seconds(2));
  collector_->CloseAccounts();
}

absl::Status CollectedIterations::TakeShare(const EnvShare& share, const TicketState& state, Trainer*) {
  if (absl::Status status = CheckEnvState(state, shape_); !status.ok()) return status;
  collector_->TakeShare({share.first_env, share.share_envs, AsyncFragments(share), state});
  open_ = 0;
  starves_ = false;
  return absl::OkStatus();
}

void CollectedIterations::OpenIterations(const RunRecord& record) {
  const v1::RunConfig& config = context_.config;
  const uint64_t iteration_steps = config.rollout().steps_per_iteration();
  // Overlapped: the policy that is newest collects the next iteration while the one before is collected to its end and
  // trained on.
  const uint64_t most_open = config.sync().mode() == v1::SYNC_MODE_OVERLAPPED ? 2 : 1;
  while (open_ == 0 || (open_ < most_open && record.env_steps + open_ * iteration_steps < config.total_steps())) {
    const uint64_t env_steps = record.env_steps + open_ * iteration_steps;  // When its update begins.
    const uint32_t phase = PhaseAt(config, env_steps);
    const v1::DirectionsConfig directions = ConfigOfPhase(config, phase).directions();
    collector_->OpenIteration(record.iteration + 1,
                              {.env_phase = EnvPhase(config, phase),
                               .directions = DirectionSettingsAt(directions, Progress(config, record.env_steps))});
    service_.SendGrants();
    ++open_;
  }
}

absl::StatusOr<IterationSource::Answer> CollectedIterations::Next(const RunRecord& record, Trainer*) {
  OpenIterations(record);
  return ranks_.group() == nullptr ? NextAlone() : NextWithRanks();
}

IterationSource::Answer CollectedIterations::Take(RankDecision decision, Collector::Iteration collected) const {
  const Columns& batch = *collected.batch;
  Iteration iteration{collected.batch,
                      {.steps = batch.steps(), .share_envs = batch.share_envs(), .columns = batch.columns()},
                      collected.policy_version,
                      collected.state ? *std::move(collected.state) : TicketState()};
  Trainer::Collected& data = iteration.data;
  data.samples = batch.samples();
  data.stage_seconds = collected.stage_seconds;
  data.failed_episodes = collected.failed_episodes;
  data.env_steps = static_cast<uint64_t>(batch.steps() * batch.share_envs());
  if (SearchesDirections(context_.config)) {
    DirectionEpisodes episodes = ReadDirectionEpisodes(batch, context_.config.directions().num_envs());
    data.env_steps = episodes.env_steps;
    data.samples = static_cast<int64_t>(episodes.env_steps);
    data.episode_return = std::move(episodes.episode_return);
    data.episode_length = std::move(episodes.episode_length);
    return {std::move(decision), std::move(iteration)};
  }
  const auto returns = batch.values<float>("episode_return"), metrics = batch.values<float>("episode_metrics");
  const auto lengths = batch.values<int64_t>("episode_length");
  data.episode_return.assign(returns.begin(), returns.end());
  data.episode_length.assign(lengths.begin(), lengths.end());
  data.episode_metrics.assign(metrics.begin(), metrics.end());
  return {std::move(decision), std::move(iteration)};
}

void CollectedIterations::KeepWaiting(absl::Duration* told) {
  service_.SendGrants();
  if (collector_->actors() == 0) report_.progress().SetState(v1::RUN_STATE_WAITING_FOR_DATA);
  if (MonotonicNow() - *told <= kTell) return;
  *told = MonotonicNow();
  spdlog::info("waiting for trajectories from {}",
               collector_->actors() == 0 ? "actors: none is connected" : collector_->DescribeHolders());
}

absl::StatusOr<IterationSource::Answer> CollectedIterations::NextAlone() {
  absl::Duration told = MonotonicNow();
  while (true) {
    const absl::Duration wait_from = MonotonicNow();
    auto iteration = collector_->WaitForIteration(kLateTickets);
    context_.metrics->AddStage(Stage::kBarrier, MonotonicNow() - wait_from);
    collector_->CloseSilent(absl::Seconds(60));
    if (context_.stopping()) return Answer();
    if (iteration) {
      RankDecision decision;
      decision.kind = RankDecision::Kind::kTrain;
      decision.total_columns = iteration->batch->columns();
      return Take(std::move(decision), *std::move(iteration));
    }
    KeepWaiting(&told);
  }
}

absl::StatusOr<IterationSource::Answer> CollectedIterations::NextWithRanks() {
  std::optional<Collector::Iteration> iteration;
  const absl::Duration begin = MonotonicNow();
  absl::Duration told = begin, met = begin;
  if (!starves_) arrived_ = begin;
  uint64_t queued = collector_->queued_fragments();
  while (true) {
    const absl::Duration wait_from = MonotonicNow();
    if (!iteration) iteration = collector_->WaitForIteration(kLateTickets);
    context_.metrics->AddStage(Stage::kBarrier, MonotonicNow() - wait_from);
    collector_->CloseSilent(absl::Seconds(60));
    if (context_.expelled()) return Answer();
    if (!iteration) {
      KeepWaiting(&told);
      if (collector_->queued_fragments() != queued) {
        arrived_ = MonotonicNow();
        starves_ = false;
      }
      queued = collector_->queued_fragments();
      // A rank that starves meets at once, so that the others do not wait for it.
      if (!context_.stopping() && !starves_ && MonotonicNow() - met < RankGroup::kRound) continue;
    }
    const absl::Duration meet_from = MonotonicNow();
    auto decision = ranks_.Agree(iteration ? std::optional<int64_t>(iteration->batch->columns()) : std::nullopt,
                                 meet_from - arrived_);
    met = MonotonicNow();
    context_.metrics->AddStage(Stage::kBarrier, met - meet_from);
    if (!decision.ok()) return decision.status();
    using Kind = RankDecision::Kind;
    if (decision->kind == Kind::kStop || decision->kind == Kind::kAdmit) return Answer{*std::move(decision), {}};
    if (decision->kind == Kind::kTrain) return Take(*std::move(decision), *std::move(iteration));
    if (decision->kind == Kind::kGoOnShort && !iteration) {
      iteration = collector_->TakeWhatIsThere();
      if (!iteration) continue;  // Stopped.
      context_.metrics->CountShortfall();
      starves_ = true;
      spdlog::warn("rank {}: no trajectories for {}; going on with {} of its environments", context_.options.rank,
                   absl::FormatDuration(absl::Trunc(met - arrived_, absl::Seconds(1))), iteration->batch->share_envs());
    }
  }
}

absl::Status CollectedIterations::Publish(uint64_t iteration, const Trainer& trainer) {
  const absl::Duration begin = MonotonicNow();
  collector_->Published(iteration + 1);
  if (iteration < published_) return absl::OkStatus();  // As long as no rank has a newer state.
  published_ = iteration + 1;
  auto snapshot = trainer.Snapshot(iteration + 1);
  if (!snapshot.ok()) return snapshot.status();
  publisher_.Publish(*snapshot);
  context_.metrics->AddStage(Stage::kPublish, MonotonicNow() - begin);
  return absl::OkStatus();
}

void CollectedIterations::Trained(uint64_t env_steps) {
  collector_->Trained(env_steps);
  if (open_ > 0) --open_;
}

}  // namespace skein
