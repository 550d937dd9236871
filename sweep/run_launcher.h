// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process/resource_share.h"
#include "base/process/share_enforcer.h"
#include "base/telemetry/process_usage.h"
#include "launch/child.h"
#include "launch/launch_plan.h"
#include "sweep/array_places.h"
#include "sweep/launcher.h"
#include "sweep/lent_slots.h"
#include "sweep/lent_training.h"
#include "sweep/run_log.h"
#include "sweep/space.h"

namespace skein {

// Carries out jobs as child processes, or as those of workers that lend slots: each a `skein train` whose run folder is
// in the sweep's.
//   <folder>/{base.yaml, trial-00003-s0/, log/trial-00003-s0.log}
// A child ends, with a checkpoint, when this process does. Not thread-safe.
class RunLauncher : public Launcher {
 public:
  struct Options {
    std::string folder;          // Of the sweep. Has base.yaml.
    std::string program_folder;  // Has skein.
    std::string metric;
    std::string metric_place;  // "path:line:column" of the metric, for messages; empty = none.
    uint64_t total_steps = 0;
    uint32_t slots = 1;  // Here.
    uint32_t cores_per_slot = 1;
    std::string device;                 // --device of each training; empty = none.
    std::vector<std::string> launcher;  // Words before the command, such as srun and its flags; empty = none.
    std::vector<std::string> gpus;      // CUDA_VISIBLE_DEVICES of each slot; empty = inherited.
    ArrayPlaces* places = nullptr;      // Takes the place of slots: a training on each, by the launcher. Null = none.
    ResourceShare share;                // Of each training, to which it is held unless there is a launcher.
  };
  // `space` must outlive this.
  RunLauncher(Options options, const Space* space)
      : options_(std::move(options)), space_(space), lent_(options_.folder) {}

  uint32_t free_slots() const override;
  double cores_per_slot() const override { return options_.share.cpus.value_or(options_.cores_per_slot); }
  // InvalidArgument: the configuration is refused.
  absl::Status Start(const Job& job) override;
  bool IsActive(const RunKey& run) const override { return active_.count(run) > 0; }
  void Stop(const RunKey& run) override;
  std::vector<JobEnd> Poll() override;
  absl::Duration ActiveTime() const override;
  absl::StatusOr<std::optional<double>> Value(const RunKey& run, uint64_t steps, bool at_rest) override;
  uint64_t Steps(const RunKey& run) override;
  absl::Status Copy(const RunKey& from, const Job& to) override;

  // Those of a job array and of workers come and go: there may be fewer than are busy.
  uint32_t slots() const;
  // Those of workers.
  const std::vector<std::string>& lent_slots() const { return lent_.List(); }
  uint32_t busy() const { return static_cast<uint32_t>(active_.size()); }
  // By what trainings are held to their share here, for people; empty: they have none, or none is under way.
  std::string held_by() const;
  // Of all trainings so far that ran here.
  ProcessUsage Usage() const;
  std::string RunFolder(const RunKey& run) const { return options_.folder + "/" + RunName(run); }
  static std::string RunName(const RunKey& run);
  // The command that trains a point in one go, for people.
  std::string Command(const Point& point, uint64_t seed, const std::string& name) const;

 private:
  // Where a training runs: in a slot of this machine, unless one of the others is not empty.
  struct Spot {
    uint32_t slot = 0;
    std::string array = {};  // Of options_.places.
    std::string lent = {};   // By a worker.
    friend bool operator==(const Spot&, const Spot&) = default;
  };
  struct Active {
    Spot spot;
    std::unique_ptr<Child> child;        // Null: it is a worker's.
    std::unique_ptr<LentTraining> lent;  // Null: it is this process's own.
    uint64_t until = 0;
    absl::Duration began;
    bool asked = false;  // To stop.
  };
  LaunchOptions OptionsOf(const Job& job) const;
  std::vector<std::string> Arguments(const Point& point, uint64_t seed, const std::string& runs_dir,
                                     const std::string& name) const;
  std::optional<Spot> FreeSpot() const;
  // Starts `skein WORDS`.
  absl::Status Begin(const std::string& name, std::vector<std::string> words, Active* active);
  RunLog& LogOf(const RunKey& run);
  JobEnd Describe(const RunKey& run, const Active& active, int code) const;

  const Options options_;
  const Space* const space_;
  const LentSlots lent_;
  ShareEnforcer enforcer_;
  std::map<RunKey, Active> active_;
  std::map<RunKey, RunLog> logs_;
};

}  // namespace skein
