// SPDX-License-Identifier: Apache-2.0
#include "coordinator/assignment.h"

#include <algorithm>

namespace skein {

void Assignment::Update(const std::set<std::string>& learners, const std::set<std::string>& actors) {
  std::map<std::string, int> load;
  for (const std::string& learner : learners) load[learner] = 0;
  for (auto it = learner_of_.begin(); it != learner_of_.end();) {
    const bool stays = actors.count(it->first) > 0 && learners.count(it->second) > 0;
    if (stays) ++load[it->second];
    it = stays ? std::next(it) : learner_of_.erase(it);
  }
  if (learners.empty()) return;
  for (const std::string& actor : actors) {
    if (learner_of_.count(actor) > 0) continue;
    auto least =
        std::min_element(load.begin(), load.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    learner_of_[actor] = least->first;
    ++least->second;
  }
}

std::string Assignment::LearnerOf(const std::string& actor) const {
  auto found = learner_of_.find(actor);
  return found == learner_of_.end() ? "" : found->second;
}

}  // namespace skein
