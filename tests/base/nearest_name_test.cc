// SPDX-License-Identifier: Apache-2.0
#include "base/config/nearest_name.h"

#include <algorithm>

#include "base/config/config_reflection.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

TEST(FindNearestName, ByTheWholeOrByTheLastPart) {
  const std::vector<std::string> verbs = {"head", "train", "drain", "status"};
  EXPECT_EQ(verbs[FindNearestName("trian", verbs, '-').index], "train");
  EXPECT_EQ(verbs[FindNearestName("stauts", verbs, '-').index], "status");
  const std::vector<std::string> flags = {"--help", "--env", "--envs", "--runs-dir"};
  EXPECT_EQ(flags[FindNearestName("--num-envs", flags, '-').index], "--envs");
  EXPECT_EQ(flags[FindNearestName("--run-dir", flags, '-').index], "--runs-dir");
  EXPECT_EQ(FindNearestName("--envs", flags, '-').edits, 0);
}

TEST(FindNearestName, IsSimilarUpToHalfOfTheLetters) {
  const std::vector<std::string> names = {"train"};
  EXPECT_TRUE(IsSimilar("trian", FindNearestName("trian", names, '-')));
  EXPECT_FALSE(IsSimilar("foo", FindNearestName("foo", names, '-')));
  const std::vector<std::string> flags = {"--steps", "--env"};
  EXPECT_EQ(FindNearestName("--evn", flags, '-').index, 1u);
  EXPECT_TRUE(IsSimilar("--evn", FindNearestName("--evn", flags, '-')));  // A swap of neighbours is one edit.
}

TEST(NearestHint, NamesASimilarNameOnly) {
  const std::vector<std::string> names = {"auto", "must", "never"};
  EXPECT_EQ(NearestHint("nevr", names, '-'), "; the nearest is 'never'");
  EXPECT_EQ(NearestHint("sometimes", names, '-'), "");
  EXPECT_EQ(NearestHint("", names, '-'), "");
  EXPECT_EQ(NearestHint(std::string(10'000, 'x'), names, '-'), "");
  EXPECT_EQ(NearestHint("nevr", {}, '-'), "");
}

TEST(FindNearestSetting, KnowsWhatOtherProgramsCallIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"ppo.learning_rate", "ppo.lr"},
      {"learning_rate", "ppo.lr"},
      {"ppo.learnig_rate", "ppo.lr"},
      {"reinforce.learning_rate", "reinforce.lr"},
      {"ppo.clip_range", "ppo.clip"},
      {"ppo.ent_coef", "ppo.entropy_coefficient"},
      {"ppo.n_epochs", "ppo.epochs"},
      {"n_envs", "rollout.num_envs"},
      {"total_timesteps", "total_steps"},
      {"env.env_name", "env.id"},
      {"ppo.discount", "ppo.gamma"},
      {"learner.lr", "ppo.lr"},
      {"ppo.gama", "ppo.gamma"},
      {"model.hidden_sizes", "model.hidden"},
      {"gama", "ppo.gamma"},
      {"nmae", "name"},
      {"epoch", "ppo.epochs"},
      {"sede", "seed"},
  };
  for (const auto& [typed, meant] : cases) EXPECT_EQ(FindNearestSetting(typed).path, meant) << typed;
}

TEST(SettingSynonyms, AreOfSettingsAndAreNone) {
  std::vector<std::string> keys;
  for (const std::string& path : SettingPaths()) keys.push_back(path.substr(path.rfind('.') + 1));
  for (const auto& [synonym, key] : SettingSynonyms()) {
    EXPECT_THAT(keys, Contains(key)) << synonym;
    EXPECT_EQ(std::count(keys.begin(), keys.end(), synonym), 0) << synonym << " is a setting itself";
  }
}

TEST(UnknownKey, ListsTheSectionWhereNoKeyIsNear) {
  using config_reflection::UnknownKey;
  EXPECT_THAT(UnknownKey("env.mujoco.nope"),
              AllOf(StartsWith("unknown key 'env.mujoco.nope'; env.mujoco has xml_file, xml_digest, frame_skip, "),
                    HasSubstr(", healthy_reward, ")));
  EXPECT_EQ(UnknownKey("env.mujoco.health_reward"),
            "unknown key 'env.mujoco.health_reward'; the nearest is 'env.mujoco.healthy_reward'");
  EXPECT_EQ(UnknownKey("ppo.lr.x"), "unknown key 'ppo.lr.x'; the nearest is 'ppo.lr'");  // ppo.lr is no section.
}

}  // namespace
}  // namespace skein
