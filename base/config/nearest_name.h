// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/descriptor.h"

// Finds the known name that a mistyped one probably means, for error messages.
namespace skein {

struct NearestName {
  size_t index = 0;  // Of the name in the list.
  int edits = 0;     // 0 = the same.
};

// The name that needs the fewest edits to be what was typed; the first of several. Compares whole names, and the last
// parts (after the last `separator`), where a different first part counts as one edit: "learner.lr" is one edit from
// "ppo.lr". Looks at the first 100 characters of what was typed. REQUIRES: `names` is not empty.
NearestName FindNearestName(const std::string& typed, const std::vector<std::string>& names, char separator);

// Whether the two are alike enough to be named as what the user may have meant: at most half of the letters are edits.
bool IsSimilar(const std::string& typed, const NearestName& nearest);

// What a message about a wrong name says at its end: "; the nearest is 'train'", or nothing if no name is similar.
std::string NearestHint(const std::string& typed, const std::vector<std::string>& names, char separator);

// What the settings' last keys are called in other programs of reinforcement learning: {"learning_rate", "lr"}.
const std::vector<std::pair<std::string, std::string>>& SettingSynonyms();

// All settings and their sections, as "ppo.lr" and "ppo", in the order of config.proto.
const std::vector<std::string>& SettingPaths();
// The same of another message with settings, in the order of its fields.
std::vector<std::string> SettingPathsOf(const google::protobuf::Descriptor* root);

// The setting nearest to a path that no setting has, by its own keys or by their synonyms.
struct NearestSetting {
  std::string path;
  int edits = 0;
};
NearestSetting FindNearestSetting(const std::string& path);

}  // namespace skein
