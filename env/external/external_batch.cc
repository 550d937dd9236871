// SPDX-License-Identifier: Apache-2.0
#include "env/external/external_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/number/number_bounds.h"
#include "base/process/clock.h"
#include "base/process/message_text.h"
#include "env/external/external_counts.h"
#include "env/external/server_hangs.h"
#include "env/external/world_spec.h"
#include "env/hopeless_env.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr absl::Duration kWindow = absl::Minutes(10);
constexpr absl::Duration kShortestPause = absl::Milliseconds(100), kLongestPause = absl::Seconds(5);
// After so long without a failure the next pause is the shortest again.
constexpr absl::Duration kForgotten = absl::Minutes(1);
// Failures of environments that the log has in a minute.
constexpr size_t kLinesInAMinute = 10;
// After so many steps in a row that failed in all environments of the group, failing is a failure to start.
constexpr int kBarrenSteps = 10;
// So often where no step has ever succeeded: its code is wrong, and a run would go on with nothing to learn from.
constexpr int kBarrenBeginnings = 3;
// Servers in a row that were lost before any environment of the group took a step.
constexpr int kLostServers = 5;
// Seeds of the protocol are under 2^31.
uint32_t OnTheWire(uint32_t seed) { return seed >> 1; }
// What fails because of its seed would fail with it for ever.
uint32_t SeedOfTry(uint32_t seed, uint32_t failed_tries) { return seed + 0x9e3779b9u * failed_tries; }

}  // namespace

ExternalBatch::ExternalBatch(Options options, std::unique_ptr<World> world, Open open)
    : options_(std::move(options)),
      open_(std::move(open)),
      world_(std::move(world)),
      spec_(world_->spec()),
      row_(spec_),
      states_(world_->size()),
      budget_(options_.restarts, kWindow),
      lines_(kLinesInAMinute, absl::Minutes(1)) {}

absl::Status ExternalBatch::Exchange(WorldRequest request) { return world_->Exchange(request, options_.step_timeout); }

void ExternalBatch::LoseServer(const absl::Status& why) {
  uint64_t lost = 0;
  for (State& state : states_) lost += state.lost || state.ended ? 0 : 1;
  for (State& state : states_) state = {};
  world_.reset();
  ++lost_servers_;
  if (const absl::Duration now = MonotonicNow(); absl::IsDeadlineExceeded(why)) {
    HangsOfExternalEnvs().Count(now - options_.step_timeout, now);
  }
  why_ = std::string(why.message());
  CountsOfExternalEnvs().lost_episodes += lost;
  spdlog::warn("{}: {}; {} episodes are truncated", options_.id, OneLine(why_), lost);
}

void ExternalBatch::LoseEnv(size_t e, When when, const std::string& why) {
  if (when == When::kInEpisode) ++CountsOfExternalEnvs().lost_episodes;
  states_[e] = {};
  why_ = why;
  if (!lines_.Take(MonotonicNow())) {
    ++left_out_;
    return;
  }
  const uint64_t left_out = std::exchange(left_out_, 0);
  const std::string others = left_out == 0 ? "" : absl::StrCat(" (and ", left_out, " failures before it)");
  spdlog::warn("{}: environment {} of its group: {}; its episode {}{}", options_.id, e, OneLine(why),
               when == When::kInEpisode ? "is truncated" : "has not begun", others);
}

// What is wrong with the reply's row of environment `e`, or empty.
std::string ExternalBatch::Problem(size_t e) const {
  const WorldColumns& columns = world_->columns();
  const uint8_t terminated = columns.terminated[e], truncated = columns.truncated[e];
  if (terminated > 1 || truncated > 1 || terminated + truncated > 1) {
    return absl::StrCat("its flags are terminated ", terminated, " and truncated ", truncated,
                        ", want 0 or 1, not both");
  }
  const auto beyond = [e](const char* what, const float* column, size_t row, float bound) -> std::string {
    const size_t i = FindBeyond(column + e * row, row, bound);
    if (i == row) return "";
    return absl::StrCat("number ", i, " of ", what, " is ", column[e * row + i], "; want at most ", bound,
                        " in magnitude");
  };
  const bool ended = terminated + truncated > 0;
  for (const std::string& problem :
       {beyond("the observation", columns.observation, row_.observation, kNumberBound),
        beyond("the reward", columns.reward, row_.agents, kNumberBound),
        beyond("the global state", columns.global_state, row_.global_state, kNumberBound),
        beyond("the metrics", columns.episode_metrics, row_.metrics, kEpisodeBound),
        ended ? beyond("the final observation", columns.final_observation, row_.observation, kNumberBound) : "",
        ended ? beyond("the final global state", columns.final_global_state, row_.global_state, kNumberBound) : ""}) {
    if (!problem.empty()) return problem;
  }
  const uint8_t* const active = columns.active + e * row_.agents;
  if (std::any_of(active, active + row_.agents, [](uint8_t one) { return one > 1; })) return "active is not 0 or 1";
  return "";
}

void ExternalBatch::CheckFailures(When when) {
  std::vector<std::string> said(states_.size());
  for (const env::v1::Failure& failure : world_->TakeFailures()) {
    if (failure.env() < said.size()) said[failure.env()] = failure.message();
  }
  for (size_t e = 0; e < states_.size(); ++e) {
    if (states_[e].lost || (when == When::kAtBeginning && world_->columns().mask[e] == 0)) continue;
    if (world_->columns().failed[e] != 0) {
      LoseEnv(e, when, said[e].empty() ? "failed" : said[e]);
    } else if (const std::string problem = Problem(e); !problem.empty()) {
      LoseEnv(e, when, problem);
    }
  }
}

void ExternalBatch::Step(const float* action, const uint32_t* next_seed) {
  stepped_ = true;
  if (world_ == nullptr) return;  // All are lost.
  const WorldColumns& columns = world_->columns();
  const size_t E = states_.size();
  // A server has no row to leave out: what is lost begins an episode that nobody sees.
  std::transform(states_.begin(), states_.end(), columns.mask, [](const State& state) { return state.lost ? 1 : 0; });
  if (std::any_of(columns.mask, columns.mask + E, [](uint8_t one) { return one != 0; })) {
    std::fill_n(columns.seed, E, 0u);
    if (absl::Status status = Exchange(WorldRequest::kReset); !status.ok()) return LoseServer(status);
    world_->TakeFailures();
  }
  std::copy_n(action, E * row_.action, columns.action);
  std::transform(next_seed, next_seed + E, columns.seed, OnTheWire);
  if (absl::Status status = Exchange(WorldRequest::kStep); !status.ok()) return LoseServer(status);
  CheckFailures(When::kInEpisode);
  ++barren_;
  for (size_t e = 0; e < E; ++e) {
    State& state = states_[e];
    if (state.lost) continue;
    barren_ = lost_servers_ = 0;
    ever_stepped_ = true;
    state.fresh = false;
    state.truncated = columns.truncated[e] != 0;
    state.ended = state.begun = state.truncated || columns.terminated[e] != 0;
    state.seed = next_seed[e];
  }
  if (barren_ == 0) HangsOfExternalEnvs().CountStep();
}

bool ExternalBatch::TakeStep(size_t e, const float* action, float* reward) {
  if (!stepped_ && states_.size() == 1) {
    const uint32_t none = 0;
    Step(action, &none);
    states_[e].begun = false;
    stepped_ = false;
  }
  if (states_[e].lost) {
    states_[e].truncated = false;
    std::fill_n(reward, row_.agents, std::numeric_limits<float>::quiet_NaN());
    return false;
  }
  std::copy_n(world_->columns().reward + e * row_.agents, row_.agents, reward);
  return world_->columns().terminated[e] != 0;
}

void ExternalBatch::Pause(const std::string& why) {
  if (!ever_stepped_) FirstReasonOfExternalEnvs().Note(absl::StrCat(options_.id, ": ", OneLine(why)));
  const absl::Duration now = MonotonicNow();
  if (!budget_.Take(now)) {
    throw std::runtime_error(absl::StrCat("failed more than ", options_.restarts, " times within ",
                                          absl::FormatDuration(kWindow),
                                          " (env.external.restarts), the last time: ", why));
  }
  if (now - last_failure_ > kForgotten) pause_ = absl::ZeroDuration();
  pause_ = std::clamp(2 * pause_, kShortestPause, kLongestPause);
  absl::SleepFor(pause_);
  last_failure_ = MonotonicNow();
}

void ExternalBatch::GiveUpIfHopeless() const {
  const ServerHangs& hangs = HangsOfExternalEnvs();
  if (hangs.in_a_row() < ServerHangs::kMost) return;
  throw HopelessEnv(hangs.stepped() ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kFailedPrecondition,
                    absl::StrCat("servers hung ", hangs.in_a_row(),
                                 " times in a row, and no environment of this process has taken a "
                                 "step meanwhile (skein env check says more), the last time: ",
                                 OneLine(why_)));
}

void ExternalBatch::EnsureWorld() {
  if (world_ == nullptr) GiveUpIfHopeless();
  if (world_ == nullptr && lost_servers_ >= kLostServers) {
    throw std::runtime_error(absl::StrCat("its server failed ", lost_servers_,
                                          " times in a row without one good step between (skein env check says more), "
                                          "the last time: ",
                                          why_));
  }
  while (world_ == nullptr) {
    Pause(why_);
    const absl::Duration begun = MonotonicNow();
    auto opened = open_();
    if (opened.ok()) {
      if (absl::Status status = CheckSameSpec((*opened)->spec(), spec_); !status.ok()) {
        throw std::runtime_error(std::string(status.message()));
      }
      world_ = *std::move(opened);
      ++CountsOfExternalEnvs().restarted_servers;
      spdlog::info("{}: its server has been started again", options_.id);
    } else {
      why_ = std::string(opened.status().message());
      spdlog::warn("{}: {}", options_.id, OneLine(why_));
      if (absl::IsDeadlineExceeded(opened.status())) HangsOfExternalEnvs().Count(begun, MonotonicNow());
      GiveUpIfHopeless();
    }
  }
}

bool ExternalBatch::TryReset(size_t e, uint32_t seed) {
  const WorldColumns& columns = world_->columns();
  std::fill_n(columns.mask, states_.size(), uint8_t{0});
  columns.mask[e] = 1;
  columns.seed[e] = OnTheWire(seed);
  columns.failed[e] = columns.terminated[e] = columns.truncated[e] = 0;
  states_[e] = {};
  if (absl::Status status = Exchange(WorldRequest::kReset); !status.ok()) {
    LoseServer(status);
    return false;
  }
  states_[e].lost = false;
  CheckFailures(When::kAtBeginning);
  return !states_[e].lost;
}

void ExternalBatch::Reset(size_t e, uint32_t seed) {
  stepped_ = false;
  State& state = states_[e];
  if (!state.lost && state.begun && state.seed == seed) {
    state = {.lost = false, .fresh = true};
    return;
  }
  if (barren_ >= kBarrenSteps) {
    if (!ever_stepped_ && ++barren_beginnings_ > kBarrenBeginnings) {
      throw std::runtime_error(absl::StrCat("each of its first ", barren_beginnings_ * kBarrenSteps,
                                            " steps failed (skein env check says more), the last one: ", why_));
    }
    Pause(why_);
    barren_ = 0;
  }
  EnsureWorld();
  for (uint32_t failed_tries = 0; !TryReset(e, SeedOfTry(seed, failed_tries)); ++failed_tries) {
    if (world_ != nullptr && failed_tries > 0) Pause(why_);
    EnsureWorld();
  }
  state = {.lost = false, .fresh = true};
}

void ExternalBatch::Observe(size_t e, float* obs) const {
  if (states_[e].lost) {
    std::fill_n(obs, row_.observation, 0.0f);
    return;
  }
  const WorldColumns& columns = world_->columns();
  const float* const column = states_[e].ended ? columns.final_observation : columns.observation;
  std::copy_n(column + e * row_.observation, row_.observation, obs);
}

void ExternalBatch::GlobalState(size_t e, float* state) const {
  if (states_[e].lost) {
    std::fill_n(state, row_.global_state, 0.0f);
    return;
  }
  const WorldColumns& columns = world_->columns();
  const float* const column = states_[e].ended ? columns.final_global_state : columns.global_state;
  std::copy_n(column + e * row_.global_state, row_.global_state, state);
}

void ExternalBatch::Active(size_t e, uint8_t* active) const {
  if (states_[e].lost || states_[e].fresh) {
    std::fill_n(active, row_.agents, uint8_t{1});
  } else {
    std::copy_n(world_->columns().active + e * row_.agents, row_.agents, active);
  }
}

void ExternalBatch::EpisodeMetrics(size_t e, float* metrics) const {
  if (states_[e].lost) {
    std::fill_n(metrics, row_.metrics, 0.0f);
  } else {
    std::copy_n(world_->columns().episode_metrics + e * row_.metrics, row_.metrics, metrics);
  }
}

}  // namespace skein
