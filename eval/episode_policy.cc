// SPDX-License-Identifier: Apache-2.0
#include "eval/episode_policy.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/nearest_name.h"
#include "base/number/philox.h"
#include "base/process/message_text.h"
#include "env/registry.h"

namespace skein {
namespace {

class RandomActions : public EpisodePolicy {
 public:
  RandomActions(EnvSpec spec, uint64_t seed) : spec_(std::move(spec)), seed_(seed) {}

  void Begin(uint32_t first, uint32_t count) override {
    streams_.clear();
    for (uint32_t e = 0; e < count; ++e) streams_.emplace_back(seed_, RandomPurpose::kAction, first + e, 0);
  }

  void Act(const float*, float* action) override {
    for (RandomStream& stream : streams_) {
      for (int agent = 0; agent < spec_.num_agents; ++agent) {
        if (spec_.discrete) {
          *action++ = static_cast<float>(stream.Below(spec_.action_size));
          continue;
        }
        for (int d = 0; d < spec_.action_size; ++d) {
          *action++ = static_cast<float>(stream.Uniform(double{spec_.action_low[d]}, double{spec_.action_high[d]}));
        }
      }
    }
  }

 private:
  const EnvSpec spec_;
  const uint64_t seed_;
  std::vector<RandomStream> streams_;
};

class ScriptedActions : public EpisodePolicy {
 public:
  ScriptedActions(ScriptedPolicy policy, int num_agents) : policy_(std::move(policy)), num_agents_(num_agents) {}

  void Begin(uint32_t, uint32_t count) override { agents_ = static_cast<int>(count) * num_agents_; }
  void Act(const float* obs, float* action) override { policy_(agents_, obs, action); }

 private:
  const ScriptedPolicy policy_;
  const int num_agents_;  // Of an environment.
  int agents_ = 0;        // Of all that run.
};

}  // namespace

absl::StatusOr<std::unique_ptr<EpisodePolicy>> MakeBaseline(const std::string& name, const EnvSpec& spec,
                                                            const EnvOptions& options, uint64_t seed) {
  if (name == "random") return std::make_unique<RandomActions>(spec, seed);
  if (name != "greedy") {
    return absl::InvalidArgumentError(absl::StrCat("--baseline: got ", Quoted(name), ", want random or greedy",
                                                   NearestHint(name, {"random", "greedy"}, '-')));
  }
  auto greedy = MakeGreedyPolicy(spec.id, options);
  if (!greedy.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--baseline greedy: ", greedy.status().message(), ". Without a checkpoint try --baseline random"));
  }
  if (!options.transforms.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--baseline greedy reads observations as they are, and ",
                                                   options.transforms.front().setting, " is set"));
  }
  return std::make_unique<ScriptedActions>(*std::move(greedy), spec.num_agents);
}

}  // namespace skein
