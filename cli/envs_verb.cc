// SPDX-License-Identifier: Apache-2.0
// skein envs: the registered environments.
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process/exit_code.h"
#include "cli/verbs.h"
#include "env/registry.h"
#include "launch/recipe.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

struct EnvsFlags {
  std::string id;  // Empty = all.
  bool recipe = false;
  bool json = false;
};

std::string RecipeFile(const std::string& id) {
  const Recipe* const recipe = FindRecipe(id);
  return recipe == nullptr ? "" : recipe->file;
}

nlohmann::ordered_json Describe(const EnvInfo& env) {
  const std::string recipe = RecipeFile(env.id);
  return {{"id", env.id},
          {"summary", env.summary},
          {"agents", env.spec.num_agents},
          {"obs_size", env.spec.obs_size},
          {"discrete", env.spec.discrete},
          {"action_size", env.spec.action_size},
          {"max_episode_steps", env.spec.max_episode_steps},
          {"reward_threshold", env.spec.reward_threshold},
          {"recipe", recipe.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(recipe)}};
}

std::string Actions(const EnvInfo& env) {
  return absl::StrCat(env.spec.action_size, env.spec.discrete ? " choices" : " reals");
}

int PrintAll(bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const EnvInfo& env : ListEnvs()) list.push_back(Describe(env));
    std::cout << list.dump(2) << std::endl;
    return kExitOk;
  }
  std::cout << absl::StrFormat("%-26s %6s %4s  %-9s %6s  %-40s %s\n", "ID", "AGENTS", "OBS", "ACTIONS", "LIMIT",
                               "RECIPE", "");
  for (const EnvInfo& env : ListEnvs()) {
    const std::string recipe = RecipeFile(env.id);
    std::cout << absl::StrFormat("%-26s %6d %4d  %-9s %6d  %-40s %s\n", env.id, env.spec.num_agents, env.spec.obs_size,
                                 Actions(env), env.spec.max_episode_steps, recipe.empty() ? "-" : recipe, env.summary);
  }
  std::cout << "`skein train --env ID` takes the recipe; `skein envs ID --recipe` prints it\nMuJoCo " << MujocoVersion()
            << std::endl;
  return kExitOk;
}

int PrintOne(const EnvInfo& env, const EnvsFlags& flags) {
  const Recipe* const recipe = FindRecipe(env.id);
  if (flags.recipe) {
    if (recipe == nullptr) {
      return ReportAndExitCode("skein envs", absl::NotFoundError(absl::StrCat(
                                                 env.id, " has no recipe; `skein train --env ", env.id,
                                                 "` takes general settings and writes them to the run's config.yaml")));
    }
    std::cout << recipe->text << std::flush;
    return kExitOk;
  }
  if (flags.json) {
    std::cout << Describe(env).dump(2) << std::endl;
    return kExitOk;
  }
  std::cout << env.id << ": " << env.summary << "\nagents " << env.spec.num_agents << ", observations of "
            << env.spec.obs_size << " numbers, actions of " << Actions(env) << ", at most "
            << env.spec.max_episode_steps << " steps";
  if (env.spec.reward_threshold != 0) std::cout << ", solved at a return of " << env.spec.reward_threshold;
  if (recipe == nullptr) {
    std::cout << "\nrecipe: none; `skein train --env " << env.id << "` takes general settings" << std::endl;
  } else {
    std::cout << "\nrecipe: " << recipe->file << "; `skein train --env " << env.id << "` takes it, `skein envs "
              << env.id << " --recipe` prints it" << std::endl;
  }
  return kExitOk;
}

int PrintEnvs(const EnvsFlags& flags) {
  if (flags.id.empty()) {
    if (!flags.recipe) return PrintAll(flags.json);
    return ReportAndExitCode(
        "skein envs",
        absl::InvalidArgumentError("--recipe: of which environment? e.g. `skein envs CartPole-v1 --recipe`"));
  }
  for (const EnvInfo& env : ListEnvs()) {
    if (env.id == flags.id) return PrintOne(env, flags);
  }
  return ReportAndExitCode("skein envs", FindEnvSpec(flags.id).status());  // Names the nearest.
}

}  // namespace

void AddEnvs(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("envs", "List the environments and their recipes");
  auto flags = std::make_shared<EnvsFlags>();
  verb->add_option("id", flags->id, "Only this environment")->type_name("ENV");
  verb->add_flag("--recipe", flags->recipe, "Print its recipe, YAML for --config");
  verb->add_flag("--json", flags->json, "Print a JSON array, or with an id one object");
  verb->footer("Example:\n  skein envs CartPole-v1 --recipe > mine.yaml");
  verb->callback([flags, action] { *action = [flags] { return PrintEnvs(*flags); }; });
}

}  // namespace skein
