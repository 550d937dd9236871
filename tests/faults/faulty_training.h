// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/testing/program.h"

namespace skein {

// `skein train` of configs/cartpole_ppo.yaml in a folder of its own, with SKEIN_FAULTS in all its processes. Mode
// on_policy: whatever happens on the way, who gets to the end has the digest that a quiet run has.
class FaultyTraining {
 public:
  // 20 iterations of 1,024 steps, a checkpoint after each. `settings`: more of them, "a.b=value". `evaluates`: at the
  // end of the run.
  explicit FaultyTraining(const std::vector<std::string>& settings = {}, uint32_t iterations = 20,
                          bool evaluates = false);

  // One session from its start to its end. `faults` empty: none.
  Ended Train(const std::string& faults, const std::vector<std::string>& arguments = {}) const;
  // The same in the background. `variables`: more of the environment, "NAME=value".
  std::unique_ptr<Running> Start(const std::string& faults, const std::vector<std::string>& arguments = {},
                                 std::vector<std::string> variables = {}) const;

  std::string run() const { return runs_.path() + "/run"; }
  std::string checkpoints() const { return run() + "/checkpoints"; }
  // For markers and the like.
  std::string folder() const { return runs_.path(); }
  // What the process with this name ("learner", "actor-1") has logged in all sessions.
  std::string Log(const std::string& name) const;
  // The target is reached, and all steps are accounted for: the last checkpoint's digest.
  std::string FinishedDigest() const;

  // What FinishedDigest() is without faults; found once.
  static const std::string& Undisturbed();

 private:
  const std::vector<std::string> settings_;
  const uint32_t iterations_;
  const bool evaluates_;
  const ScratchFolder runs_;
};

// How often `text` contains `part`.
int Count(const std::string& text, const std::string& part);

}  // namespace skein
