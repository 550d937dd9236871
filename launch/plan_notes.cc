// SPDX-License-Identifier: Apache-2.0
#include "launch/plan_notes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/config/phases.h"
#include "google/protobuf/util/message_differencer.h"
#include "launch/recipe.h"

namespace skein {

using google::protobuf::util::MessageDifferencer;

namespace {

// Settings of a memory that are not the defaults, by key.
std::vector<std::string> MemorySettings(const v1::RunConfig& user, const v1::RunConfig& defaults) {
  std::vector<std::string> keys;
  const auto& model = user.model();
  if (model.has_memory_size() && model.memory_size() != defaults.model().memory_size()) {
    keys.emplace_back("model.memory_size");
  }
  if (model.has_critic_memory() && model.critic_memory() != defaults.model().critic_memory()) {
    keys.emplace_back("model.critic_memory");
  }
  return keys;
}

}  // namespace

std::string AutomaticNote(const std::optional<RunSizes>& before, uint32_t cores, uint32_t learners) {
  if (before) {
    return absl::StrCat("runners: ", before->runners, " with ", before->envs_per_runner,
                        " environments each, as in the run that this continues");
  }
  if (learners > cores) return absl::StrCat("runners: one for each of ", learners, " learners");
  return absl::StrCat("runners: one for each of ", cores, cores == 1 ? " core" : " cores",
                      "; `skein tune` would measure what suits this node");
}

std::string DeviceNote(const v1::RunConfig& config) {
  const v1::RolloutConfig& rollout = config.rollout();
  const v1::DirectionsConfig& directions = config.directions();
  if (!SearchesDirections(config)) {
    return absl::StrCat("no actors: ", rollout.num_envs(), " environments step on the learner's device, ",
                        rollout.steps_per_iteration() / rollout.num_envs(), " steps each in an iteration");
  }
  return absl::StrCat("no actors: ", directions.num_dirs(), " directions x 2 signs x ", directions.num_envs(),
                      directions.num_envs() == 1 ? " episode" : " episodes", " are played on the learner's device, ",
                      directions.dir_chunk() == 0 ? "all" : absl::StrCat(directions.dir_chunk(), " directions"),
                      " at once");
}

std::vector<std::string> UnreadNotes(const v1::RunConfig& user, const v1::RunConfig& config) {
  // The configuration in a run's folder has all settings, those that were not read too.
  v1::RunConfig defaults, with_directions, with_hidden;
  ApplyDefaults(&defaults);
  with_directions = with_hidden = defaults;
  with_directions.mutable_directions()->MergeFrom(user.directions());
  if (user.model().hidden_size() > 0) *with_hidden.mutable_model()->mutable_hidden() = user.model().hidden();
  std::vector<std::string> notes;
  if (!SearchesDirections(config) && !MessageDifferencer::Equals(with_directions, defaults)) {
    notes.push_back(absl::StrCat("note: directions means nothing with ", AlgorithmName(config),
                                 " and is ignored; ars or es would search over directions"));
  }
  if (config.model().policy() == v1::POLICY_KIND_LINEAR && !MessageDifferencer::Equals(with_hidden, defaults)) {
    notes.push_back("note: model.hidden means nothing with model.policy linear and is ignored");
  }
  const std::vector<std::string> of_memory = MemorySettings(user, defaults);
  if (config.model().memory() == v1::MEMORY_NONE && !of_memory.empty()) {
    notes.push_back(absl::StrCat("note: ", absl::StrJoin(of_memory, ", "), of_memory.size() == 1 ? " means" : " mean",
                                 " nothing with model.memory none and ", of_memory.size() == 1 ? "is" : "are",
                                 " ignored"));
  }
  const auto last = static_cast<int>(PhaseAt(config, config.total_steps() - 1));
  if (last < config.phases_size()) {
    notes.push_back(absl::StrCat("note: phases: the run ends in phase ", last + 1, " of ", config.phases_size() + 1,
                                 ", because total_steps ", config.total_steps(), " is not beyond its until_steps ",
                                 config.phases(last).until_steps()));
  }
  return notes;
}

std::string SizesLeftOpenNote(const std::string& config_path, const v1::RunConfig& user, const v1::RunConfig& config) {
  if (user.rollout().has_steps_per_iteration() || SearchesDirections(config)) return "";
  const std::string& env = config.env().id();
  const std::string recipe = FindRecipe(env) == nullptr
                                 ? ""
                                 : absl::StrCat("; `skein envs ", env, " --recipe` prints what ", env, " learns with");
  return absl::StrCat(
      "note: ", config_path, " leaves rollout.steps_per_iteration open: it is ", config.rollout().steps_per_iteration(),
      ", for measuring speed, not for learning. `--recipe general` fills what is left open with settings "
      "for learning",
      recipe);
}

}  // namespace skein
