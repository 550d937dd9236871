// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "skein/v1/sweep.pb.h"
#include "sweep/trial.h"

namespace skein {

// Decides which trials go on, from what is known of all of them.   Trials -> Judge -> Verdict
// Without state of its own: the same trials give the same verdict, in whatever order their results came, and also after
// a restart. What a verdict says is journalled one by one; one that was carried out in part comes again for the rest.
class Scheduler {
 public:
  struct Copy {
    uint32_t member = 0;  // Whose latest trial is replaced,
    uint32_t loser = 0;   // this one,
    uint32_t donor = 0;   // by a copy of this one
    uint32_t rung = 0;    // as it was at this rung.
  };
  struct Verdict {
    std::vector<Copy> copies;    // To be made before anything is promoted.
    std::vector<uint32_t> stop;  // Trials that are not worth more; at once.
    // Trials at a finished rung that may go on to the next; the first is the most urgent.
    std::vector<uint32_t> promote;
    bool wants_new = true;  // Whether a new trial may begin now, if nothing is to be promoted.
    uint32_t group = 0;     // Of that new trial.
  };

  virtual ~Scheduler() = default;
  // The env steps of a trial's rungs, ascending; the last is total_steps. `group` as Trial has it.
  virtual const std::vector<uint64_t>& rungs(uint32_t group) const = 0;
  // Whether a trial's training ends at each rung. If not, it goes through, and is stopped where it has to be.
  virtual bool pauses() const = 0;
  // `trials` by number. `more`: the sampler may give new ones; if not, and no trial is on its way to a rung, what
  // waits in vain is to be stopped.
  virtual Verdict Judge(const std::vector<Trial>& trials, bool more) const = 0;
  // Trials of the whole search if `max_trials` is 0; 0 = the scheduler does not know.
  virtual uint32_t default_trials() const { return 0; }
  // Env steps that `trials` of them take, about.
  virtual double ExpectedSteps(uint32_t trials) const = 0;
  // Where its last result is; 0: it has none. Numbers of rungs do not say: brackets begin at different steps.
  uint64_t JudgedSteps(const Trial& trial) const {
    return trial.results.empty() ? 0 : rungs(trial.group)[trial.results.rbegin()->first];
  }
};

std::unique_ptr<Scheduler> MakeScheduler(const v1::SweepConfig& config, uint64_t total_steps);

// The rungs of successive halving: least, least x reduction, ... and the end. One within a hundredth of the end is the
// end; the others are then the end over reduction, over its square, ..., so that rounding `least` makes no rung more.
std::vector<uint64_t> HalvingRungs(uint64_t least, uint32_t reduction, uint64_t total);

}  // namespace skein
