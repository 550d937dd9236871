// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

namespace skein {

// Which learner each actor feeds. An actor keeps its learner while both live; otherwise it gets the live
// learner with the fewest actors, the first by id among equals. Pure. Not thread-safe.
class Assignment {
 public:
  // Brings the assignment up to date with the ids that are live now. To be called at each change: a learner
  // that goes and returns between two calls keeps its actors.
  void Update(const std::set<std::string>& learners, const std::set<std::string>& actors);

  // Empty: there is no learner, or no such actor.
  std::string LearnerOf(const std::string& actor) const;

 private:
  std::map<std::string, std::string> learner_of_;  // By actor; only actors that have a learner.
};

}  // namespace skein
