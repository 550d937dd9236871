// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "skein/v1/config.pb.h"

// A recipe is a configuration that a run starts from, below the user's own settings. The recipes of the shipped
// environments are files in configs/ and part of the programs.   --recipe -> ChooseRecipe -> ReadRunConfig
namespace skein {

struct Recipe {
  std::string env_id;
  std::string file;        // In the source tree, e.g. "configs/cartpole_ppo.yaml".
  absl::string_view text;  // YAML.
};

// One for each shipped environment, ordered by env_id.
const std::vector<Recipe>& ListRecipes();
// nullptr: the environment has none.
const Recipe* FindRecipe(const std::string& env_id);

// What the user sets in a file (empty = none) and by "a.b=value" after it, without defaults. NotFound, InvalidArgument:
// one of them cannot be read.
absl::StatusOr<v1::RunConfig> UserSettings(const std::string& config_path, const std::vector<std::string>& overrides);

struct ChosenRecipe {
  v1::RunConfig settings;  // Only what the recipe sets.
  std::string note;        // What was chosen, for the user; empty if nothing was.
};

// `recipe` is one of
//   auto     nothing if there is a --config; else the environment's recipe; else general
//   general  configs/general_ppo.yaml: short iterations and small minibatches, tuned for no task
//   study    configs/study.yaml
//   none     nothing: what the user leaves open gets its default
//   other    the path of a file
// The user's settings are `config_path` (empty = none), then `overrides`. Where they name an algorithm or sizes that
// the recipe's do not fit, the recipe's are left out or made smaller. Each of `learners` must have an env group.
// `command` is what the examples of an error begin with.
// InvalidArgument: auto without a --config or an environment, or a bad setting. NotFound: a file is not there.
absl::StatusOr<ChosenRecipe> ChooseRecipe(const std::string& recipe, const std::string& config_path,
                                          const std::vector<std::string>& overrides, uint32_t learners = 1,
                                          const std::string& command = "skein train");

}  // namespace skein
