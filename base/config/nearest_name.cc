// SPDX-License-Identifier: Apache-2.0
#include "base/config/nearest_name.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/config/edit_distance.h"
#include "skein/v1/config.pb.h"

namespace skein {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// No longer text is near a name; a hostile one may be as long as a command line.
constexpr size_t kCompared = 100;

// With the separator at its end; empty for a name without one.
std::string FirstPart(const std::string& name, char separator) { return name.substr(0, name.rfind(separator) + 1); }
std::string LastPart(const std::string& name, char separator) { return name.substr(name.rfind(separator) + 1); }

int LengthDifference(const std::string& a, const std::string& b) {
  return static_cast<int>(std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
}

void CollectPaths(const Descriptor* descriptor, const std::string& section, std::vector<std::string>* paths) {
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    paths->push_back(section + field->name());
    if (field->message_type() != nullptr && !field->is_repeated())
      CollectPaths(field->message_type(), paths->back() + ".", paths);
  }
}

// Each setting by its own name and by those that its synonyms would give it.
struct Names {
  std::vector<std::string> typed, meant;
};

Names AllNames() {
  Names names;
  for (const std::string& path : SettingPaths()) {
    names.typed.push_back(path);
    names.meant.push_back(path);
    for (const auto& [synonym, key] : SettingSynonyms()) {
      if (key != LastPart(path, '.')) continue;
      names.typed.push_back(FirstPart(path, '.') + synonym);
      names.meant.push_back(path);
    }
  }
  return names;
}

}  // namespace

NearestName FindNearestName(const std::string& typed, const std::vector<std::string>& names, char separator) {
  const std::string whole = typed.substr(0, kCompared);
  const std::string first = FirstPart(whole, separator), last = LastPart(whole, separator);
  NearestName nearest{0, std::numeric_limits<int>::max()};
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string other = LastPart(names[i], separator);
    // Who types no first part leaves it open.
    const int elsewhere = first.empty() || FirstPart(names[i], separator) == first ? 0 : 1;
    // Edits are at least as many as the lengths differ by: most names need not be compared.
    if (std::min(LengthDifference(whole, names[i]), LengthDifference(last, other) + elsewhere) >= nearest.edits) {
      continue;
    }
    const int edits = std::min(EditDistance(whole, names[i]), EditDistance(last, other) + elsewhere);
    if (edits < nearest.edits) nearest = {i, edits};
  }
  return nearest;
}

bool IsSimilar(const std::string& typed, const NearestName& nearest) {
  const size_t compared = std::min(typed.size(), kCompared);
  const auto letters = static_cast<int>(compared - std::min(compared, typed.find_first_not_of('-')));
  return 2 * nearest.edits <= letters;
}

std::string NearestHint(const std::string& typed, const std::vector<std::string>& names, char separator) {
  if (names.empty()) return "";
  const NearestName nearest = FindNearestName(typed, names, separator);
  return IsSimilar(typed, nearest) ? absl::StrCat("; the nearest is '", names[nearest.index], "'") : "";
}

const std::vector<std::pair<std::string, std::string>>& SettingSynonyms() {
  static const auto* const synonyms = new std::vector<std::pair<std::string, std::string>>{
      {"learning_rate", "lr"},
      {"lr_scheduler", "lr_schedule"},
      {"learning_rate_schedule", "lr_schedule"},
      {"discount", "gamma"},
      {"discount_factor", "gamma"},
      {"lambda", "gae_lambda"},
      {"lam", "gae_lambda"},
      {"clip_range", "clip"},
      {"clip_ratio", "clip"},
      {"clip_coef", "clip"},
      {"clip_param", "clip"},
      {"clip_range_vf", "value_clip"},
      {"vf_clip_param", "value_clip"},
      {"vf_coef", "value_coefficient"},
      {"value_loss_coef", "value_coefficient"},
      {"vf_loss_coeff", "value_coefficient"},
      {"ent_coef", "entropy_coefficient"},
      {"entropy_coef", "entropy_coefficient"},
      {"entropy_coeff", "entropy_coefficient"},
      {"target_kl", "kl_stop"},
      {"n_epochs", "epochs"},
      {"num_epochs", "epochs"},
      {"update_epochs", "epochs"},
      {"batch_size", "minibatch_size"},
      {"max_gradient_norm", "max_grad_norm"},
      {"grad_clip", "max_grad_norm"},
      {"norm_adv", "normalize_advantages"},
      {"normalize_advantage", "normalize_advantages"},
      {"adam_eps", "adam_epsilon"},
      {"n_envs", "num_envs"},
      {"num_environments", "num_envs"},
      {"n_steps", "steps_per_iteration"},
      {"num_steps", "steps_per_iteration"},
      {"train_batch_size", "steps_per_iteration"},
      {"rollout_fragment_length", "fragment_steps"},
      {"total_timesteps", "total_steps"},
      {"timesteps", "total_steps"},
      {"env_id", "id"},
      {"env_name", "id"},
      {"hidden_sizes", "hidden"},
      {"net_arch", "hidden"},
      {"layers", "hidden"},
      {"activation_fn", "activation"},
      {"norm_obs", "normalize_observations"},
      {"norm_reward", "normalize_returns"},
      {"save_freq", "interval_steps"},
      {"num_threads", "torch_threads"},
      {"n_eval_episodes", "episodes"},
  };
  return *synonyms;
}

const std::vector<std::string>& SettingPaths() {
  static const auto* const paths = new std::vector<std::string>(SettingPathsOf(v1::RunConfig::descriptor()));
  return *paths;
}

std::vector<std::string> SettingPathsOf(const Descriptor* root) {
  std::vector<std::string> paths;
  CollectPaths(root, "", &paths);
  return paths;
}

NearestSetting FindNearestSetting(const std::string& path) {
  static const auto* const names = new Names(AllNames());
  const NearestName nearest = FindNearestName(path, names->typed, '.');
  return {names->meant[nearest.index], nearest.edits};
}

}  // namespace skein
