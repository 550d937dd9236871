// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/restart_budget.h"
#include "env/env.h"
#include "env/external/world.h"

namespace skein {

// The environments of a World, stepped together.   VectorEnv -> Step -> World -> TakeStep, Observe ... of each
// It survives failures of the world: if an environment or its server fails, the episodes under way end with a reward
// that is not finite, so that VectorEnv truncates them, and the next Reset starts the environment or server again.
// Each failure is counted (external_counts.h) and one line of the log, of environments ten in a minute at most; the
// first reason for a pause before any step is kept there, for the status of the run.
// An environment that fails in a step begins its next episode at once; one that cannot begin an episode tries at once
// with another seed. A server that ends, an environment that fails to begin twice in a row, and a group of which none
// has taken a step for long are started again after a pause that grows from 0.1 s to 5 s. Throws std::runtime_error if
// that happens more than `restarts` times within ten minutes, if no step at all succeeds (after 40), if five servers in
// a row end or hang without one good step, and if a restarted server has another spec. Throws HopelessEnv if servers of
// this process have hung too often in a row (ServerHangs): FailedPrecondition if none of its groups has ever taken a
// step, else DeadlineExceeded. Not thread-safe.
class ExternalBatch final : public EnvBatch {
 public:
  struct Options {
    std::string id;
    absl::Duration step_timeout = absl::Seconds(60);
    uint32_t restarts = 20;
  };
  using Open = std::function<absl::StatusOr<std::unique_ptr<World>>()>;
  // `world` is the first; `open` makes another one like it.
  ExternalBatch(Options options, std::unique_ptr<World> world, Open open);

  const EnvSpec& spec() const { return spec_; }
  size_t size() const { return states_.size(); }

  void Step(const float* action, const uint32_t* next_seed) override;
  // The last step of environment `e`: its rewards [A]. Returns whether it terminated. An environment that is alone in
  // its batch is stepped by this, with `action`, if Step has not been called for it.
  bool TakeStep(size_t e, const float* action, float* reward);
  bool truncated(size_t e) const { return states_[e].truncated; }
  void Reset(size_t e, uint32_t seed);
  void Observe(size_t e, float* obs) const;
  void GlobalState(size_t e, float* state) const;
  void Active(size_t e, uint8_t* active) const;
  void EpisodeMetrics(size_t e, float* metrics) const;

 private:
  struct State {
    bool lost = true;        // Its world is not at a step of an episode: only Reset helps.
    bool fresh = false;      // No step since Reset.
    bool ended = false;      // The final rows are the current ones.
    bool truncated = false;  // The last step did.
    bool begun = false;      // The next episode has begun, with this seed.
    uint32_t seed = 0;
  };

  absl::Status Exchange(WorldRequest request);
  void LoseServer(const absl::Status& why);
  enum class When { kInEpisode, kAtBeginning };
  // It fails by itself.
  void LoseEnv(size_t e, When when, const std::string& why);
  std::string Problem(size_t e) const;
  // Loses environments that have failed: of all, or at the beginning of those whose mask is set.
  void CheckFailures(When when);
  // Begins an episode in the environments whose mask is set; false: their server or one of them failed.
  bool TryReset(size_t e, uint32_t seed);
  void Pause(const std::string& why);
  void GiveUpIfHopeless() const;
  void EnsureWorld();

  const Options options_;
  const Open open_;
  std::unique_ptr<World> world_;  // Null: it has failed.
  EnvSpec spec_;
  WorldRow row_;
  std::vector<State> states_;
  bool stepped_ = false;
  std::string why_;  // The last failure.
  RestartBudget budget_;
  absl::Duration pause_ = absl::ZeroDuration();
  absl::Duration last_failure_ = absl::ZeroDuration();
  RestartBudget lines_;
  uint64_t left_out_ = 0;  // Failures that are no lines of the log.
  int barren_ = 0;         // Steps in a row in which all environments failed.
  int barren_beginnings_ = 0;
  int lost_servers_ = 0;       // Since the last step that succeeded.
  bool ever_stepped_ = false;  // Some environment has taken a step.
};

}  // namespace skein
