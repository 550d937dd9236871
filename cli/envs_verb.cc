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
#include "nlohmann/json.hpp"

namespace skein {
namespace {

int PrintEnvs(bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const EnvInfo& env : ListEnvs()) {
      list.push_back({{"id", env.id},
                      {"summary", env.summary},
                      {"agents", env.spec.num_agents},
                      {"obs_size", env.spec.obs_size},
                      {"discrete", env.spec.discrete},
                      {"action_size", env.spec.action_size},
                      {"max_episode_steps", env.spec.max_episode_steps},
                      {"reward_threshold", env.spec.reward_threshold}});
    }
    std::cout << list.dump(2) << std::endl;
    return kExitOk;
  }
  std::cout << absl::StrFormat("%-26s %7s %5s  %-10s %7s  %s\n", "ID", "AGENTS", "OBS", "ACTIONS", "LIMIT", "");
  for (const EnvInfo& env : ListEnvs()) {
    const std::string actions = absl::StrCat(env.spec.action_size, env.spec.discrete ? " choices" : " reals");
    std::cout << absl::StrFormat("%-26s %7d %5d  %-10s %7d  %s\n", env.id, env.spec.num_agents, env.spec.obs_size,
                                 actions, env.spec.max_episode_steps, env.summary);
  }
  std::cout << "MuJoCo " << MujocoVersion() << std::endl;
  return kExitOk;
}

}  // namespace

void AddEnvs(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("envs", "List the environments");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "Print a JSON array");
  verb->footer("Example:\n  skein envs --json");
  verb->callback([json, action] { *action = [json] { return PrintEnvs(*json); }; });
}

}  // namespace skein
