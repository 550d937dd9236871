// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "tests/fuzz/seeds.h"

namespace skein::fuzz {

std::vector<Seed> ConfigSeeds() {
  std::vector<Seed> seeds;
  const auto add = [&seeds](const std::string& name, const std::string& text) {
    seeds.push_back({"config", name, text});
  };
  v1::RunConfig defaults;
  ApplyDefaults(&defaults);
  defaults.mutable_rollout()->set_num_envs(defaults.rollout().envs_per_runner());
  add("good_everything", ToYaml(defaults));
  add("good_nothing", "# nothing\n");
  add("good_some", "seed: 3\ntotal_steps: 2e6\nppo: {lr: 1e-3, clip_schedule: linear}\nmodel:\n  hidden: [32, 16]\n");
  add("good_assignments", "--set ppo.lr=3e-4\n--set model.hidden=[8, 8]\n--set name=a\n--set ppo={clip: 0.3}\n");
  add("bad_assignment", "--set ppo.lr\n");
  add("bad_alias", "env: &e {id: x}\nppo: *e\n");
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    const char before = static_cast<char>(c - 1);
    absl::StrAppend(&bomb, std::string(1, c), ": &", std::string(1, c), " [");
    for (int i = 0; i < 9; ++i) absl::StrAppend(&bomb, "*", std::string(1, before), i < 8 ? ", " : "]\n");
  }
  add("bad_alias_bomb", bomb);
  add("bad_deep_lists", std::string(2000, '['));
  add("bad_deep_maps", "ppo: " + std::string(1000, '{'));
  add("bad_document_twice", "seed: 1\n---\nseed: 2\n");
  add("bad_key", "seed: 1\nppo:\n  learning_rate: 1e-3\n");
  add("bad_key_twice", "ppo:\n  lr: 1e-3\n  lr: 1e-4\n");
  add("bad_negative", "ppo: {minibatch_size: -1}\n");
  add("bad_nan", "ppo: {lr: .nan}\n");
  add("bad_tag", "seed: !!int 3\n");
  add("bad_type", "ppo: {epochs: many}\n");
  add("bad_utf8", std::string("seed: \x00\xff\xfe", 9));
  add("bad_tabs", "\tseed: 1\n");
  add("bad_settings_together", "rollout: {num_envs: 5, envs_per_runner: 4}\n");
  return seeds;
}

}  // namespace skein::fuzz
