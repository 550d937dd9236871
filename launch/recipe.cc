// SPDX-License-Identifier: Apache-2.0
#include "launch/recipe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/config/message_settings.h"
#include "base/config/nearest_name.h"
#include "base/process/file.h"
#include "base/telemetry/format_count.h"
#include "env/env_config.h"
#include "env/registry.h"

namespace skein {

// Each holds the file of its name in configs/.
namespace embedded {
absl::string_view ant_ppo_yaml();
absl::string_view cartpole_ppo_yaml();
absl::string_view general_ppo_yaml();
absl::string_view half_cheetah_ppo_yaml();
absl::string_view hopper_ppo_yaml();
absl::string_view humanoid_ppo_yaml();
absl::string_view humanoid_standup_ppo_yaml();
absl::string_view inverted_double_pendulum_ppo_yaml();
absl::string_view inverted_pendulum_ppo_yaml();
absl::string_view latency_ppo_yaml();
absl::string_view mountain_car_continuous_ppo_yaml();
absl::string_view pendulum_ppo_yaml();
absl::string_view pusher_ppo_yaml();
absl::string_view quadruped_stand_ppo_yaml();
absl::string_view reacher_ppo_yaml();
absl::string_view repeat_previous_ppo_yaml();
absl::string_view sticky_cartpole_ppo_yaml();
absl::string_view study_yaml();
absl::string_view swimmer_ppo_yaml();
absl::string_view uav_cover_mappo_yaml();
absl::string_view uav_navigate_mappo_yaml();
absl::string_view walker2d_ppo_yaml();
}  // namespace embedded

namespace {

constexpr char kStudy[] = "configs/study.yaml";
constexpr char kGeneral[] = "configs/general_ppo.yaml";

absl::StatusOr<v1::RunConfig> Parse(absl::string_view text, const std::string& source) {
  v1::RunConfig settings;
  if (absl::Status status = MergeYaml(std::string(text), source, &settings); !status.ok()) return status;
  return settings;
}

uint32_t LargestDivisor(uint32_t number, uint32_t most) {
  uint32_t divisor = std::clamp(most, 1u, std::max(1u, number));
  while (number % divisor != 0) --divisor;
  return divisor;
}

// Makes the recipe's sizes fit those that the user names.
void FitSizes(const v1::RolloutConfig& user, uint32_t learners, v1::RolloutConfig* recipe) {
  const uint32_t steps = user.has_steps_per_iteration() ? user.steps_per_iteration() : recipe->steps_per_iteration();
  if (!user.has_num_envs() && recipe->num_envs() > 0) {
    const bool whole_groups =
        !user.has_envs_per_runner() || (user.envs_per_runner() > 0 && recipe->num_envs() % user.envs_per_runner() == 0);
    if (!whole_groups || steps % recipe->num_envs() != 0) recipe->clear_num_envs();  // Then the runners decide.
  }
  if (!user.has_envs_per_runner() && recipe->has_envs_per_runner()) {
    const uint32_t envs = user.has_num_envs() ? user.num_envs() : recipe->num_envs();
    if (envs > 0) {
      const uint32_t most = std::min(recipe->envs_per_runner(), envs / std::max(1u, learners));
      recipe->set_envs_per_runner(LargestDivisor(envs, most));
    }
  }
}

// The recipe's minibatch fits the user's iteration.
void FitMinibatch(const v1::RunConfig& user, v1::RunConfig* recipe) {
  if (!user.rollout().has_steps_per_iteration()) return;
  if (recipe->algorithm_case() == v1::RunConfig::ALGORITHM_NOT_SET) return;
  const uint32_t steps = std::max(1u, user.rollout().steps_per_iteration());
  if (MinibatchSize(*recipe) > steps) SetMinibatchSize(steps, recipe);
}

// general_ppo.yaml for this environment: as many gradient steps in an iteration for a team as for a single agent.
absl::StatusOr<v1::RunConfig> GeneralSettings(v1::RunConfig user) {
  auto settings = Parse(embedded::general_ppo_yaml(), kGeneral);
  if (!settings.ok()) return settings.status();
  ApplyDefaults(&user);
  const auto spec = FindEnvSpec(user.env().id(), MakeEnvOptions(user.env()));
  if (!spec.ok()) return spec.status();
  const uint64_t minibatch = uint64_t{MinibatchSize(*settings)} * static_cast<uint64_t>(spec->num_agents);
  SetMinibatchSize(static_cast<uint32_t>(std::min<uint64_t>(minibatch, settings->rollout().steps_per_iteration())),
                   &*settings);
  return settings;
}

absl::Status NoEnvironment(const std::string& command) {
  return absl::InvalidArgumentError(absl::StrCat("which environment? Examples: `", command, " --env CartPole-v1`, `",
                                                 command, " --config mine.yaml`; `skein envs` lists the environments"));
}

}  // namespace

const std::vector<Recipe>& ListRecipes() {
  static const auto* const recipes = new std::vector<Recipe>{
      {"Ant-v5", "configs/ant_ppo.yaml", embedded::ant_ppo_yaml()},
      {"CartPole-v1", "configs/cartpole_ppo.yaml", embedded::cartpole_ppo_yaml()},
      {"HalfCheetah-v5", "configs/half_cheetah_ppo.yaml", embedded::half_cheetah_ppo_yaml()},
      {"Hopper-v5", "configs/hopper_ppo.yaml", embedded::hopper_ppo_yaml()},
      {"Humanoid-v5", "configs/humanoid_ppo.yaml", embedded::humanoid_ppo_yaml()},
      {"HumanoidStandup-v5", "configs/humanoid_standup_ppo.yaml", embedded::humanoid_standup_ppo_yaml()},
      {"InvertedDoublePendulum-v5", "configs/inverted_double_pendulum_ppo.yaml",
       embedded::inverted_double_pendulum_ppo_yaml()},
      {"InvertedPendulum-v5", "configs/inverted_pendulum_ppo.yaml", embedded::inverted_pendulum_ppo_yaml()},
      {"Latency-v0", "configs/latency_ppo.yaml", embedded::latency_ppo_yaml()},
      {"MountainCarContinuous-v0", "configs/mountain_car_continuous_ppo.yaml",
       embedded::mountain_car_continuous_ppo_yaml()},
      {"Pendulum-v1", "configs/pendulum_ppo.yaml", embedded::pendulum_ppo_yaml()},
      {"Pusher-v5", "configs/pusher_ppo.yaml", embedded::pusher_ppo_yaml()},
      {"QuadrupedStand-v0", "configs/quadruped_stand_ppo.yaml", embedded::quadruped_stand_ppo_yaml()},
      {"Reacher-v5", "configs/reacher_ppo.yaml", embedded::reacher_ppo_yaml()},
      {"RepeatPrevious-v0", "configs/repeat_previous_ppo.yaml", embedded::repeat_previous_ppo_yaml()},
      {"StickyCartPole-v0", "configs/sticky_cartpole_ppo.yaml", embedded::sticky_cartpole_ppo_yaml()},
      {"Swimmer-v5", "configs/swimmer_ppo.yaml", embedded::swimmer_ppo_yaml()},
      {"UavCover-v0", "configs/uav_cover_mappo.yaml", embedded::uav_cover_mappo_yaml()},
      {"UavNavigate-v0", "configs/uav_navigate_mappo.yaml", embedded::uav_navigate_mappo_yaml()},
      {"Walker2d-v5", "configs/walker2d_ppo.yaml", embedded::walker2d_ppo_yaml()},
  };
  return *recipes;
}

const Recipe* FindRecipe(const std::string& env_id) {
  for (const Recipe& recipe : ListRecipes()) {
    if (recipe.env_id == env_id) return &recipe;
  }
  return nullptr;
}

absl::StatusOr<v1::RunConfig> UserSettings(const std::string& config_path, const std::vector<std::string>& overrides) {
  v1::RunConfig user;
  if (!config_path.empty()) {
    const auto text = ReadFile(config_path, kMaxSettingsBytes);
    if (!text.ok()) return text.status();
    if (absl::Status status = MergeYaml(*text, config_path, &user); !status.ok()) return status;
  }
  for (const std::string& assignment : overrides) {
    if (absl::Status status = ApplyOverride(assignment, &user); !status.ok()) return status;
  }
  return user;
}

absl::StatusOr<ChosenRecipe> ChooseRecipe(const std::string& recipe, const std::string& config_path,
                                          const std::vector<std::string>& overrides, uint32_t learners,
                                          const std::string& command) {
  ChosenRecipe chosen;
  if (recipe == "none" || (recipe == "auto" && !config_path.empty())) return chosen;
  const auto user = UserSettings(config_path, overrides);
  if (!user.ok()) return user.status();
  const std::string& env = user->env().id();
  absl::StatusOr<v1::RunConfig> settings;
  if (recipe == "study") {
    settings = Parse(embedded::study_yaml(), kStudy);
    chosen.note =
        absl::StrCat("recipe: ", kStudy, ", the sizes of the scaling study: for measuring speed, not for learning");
  } else if (recipe != "auto" && recipe != "general") {
    const auto text = ReadFile(recipe, kMaxSettingsBytes);
    if (!text.ok()) {
      return absl::Status(
          text.status().code(),
          absl::StrCat("--recipe: ", text.status().message(), "; want auto, general, study, none or a YAML file",
                       NearestHint(recipe, {"auto", "general", "study", "none"}, '-')));
    }
    settings = Parse(*text, recipe);
    chosen.note = absl::StrCat("recipe: ", recipe);
  } else if (recipe == "auto" && env.empty()) {
    return NoEnvironment(command);
  } else if (const Recipe* const found = FindRecipe(env); recipe == "auto" && found != nullptr) {
    settings = Parse(found->text, found->file);
    chosen.note = absl::StrCat("recipe: ", found->file, ", made for ", env, "; your own settings override it");
  } else {
    settings = GeneralSettings(*user);
    chosen.note = absl::StrCat("recipe: ", kGeneral, recipe == "auto" ? absl::StrCat(", as ", env, " has none") : "",
                               ": short iterations and small minibatches, tuned for no environment");
  }
  if (!settings.ok()) return settings.status();
  chosen.settings = *std::move(settings);
  if (user->algorithm_case() != v1::RunConfig::ALGORITHM_NOT_SET &&
      user->algorithm_case() != chosen.settings.algorithm_case()) {
    chosen.settings.clear_algorithm();
    v1::RunConfig whole = *user;
    ApplyDefaults(&whole);
    if (SearchesDirections(whole)) chosen.settings.clear_rollout();  // Its sizes are of another kind of work.
  }
  if (chosen.settings.has_rollout()) FitSizes(user->rollout(), learners, chosen.settings.mutable_rollout());
  FitMinibatch(*user, &chosen.settings);
  return chosen;
}

}  // namespace skein
