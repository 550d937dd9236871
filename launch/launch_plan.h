// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/config/resume_mode.h"
#include "skein/v1/config.pb.h"

// Turns flags into a plan of what to run.   LaunchOptions -> PlanLaunch -> LaunchPlan -> RunDirectory, RunSupervisor
namespace skein {

// The options of `skein train` and `skein head`. An unset option leaves the configuration file's value.
struct LaunchOptions {
  std::string recipe = "none";  // As ChooseRecipe takes it.
  std::string config_path;      // Empty = none.
  std::string runs_dir = "runs";
  std::string env_id;
  std::string name;
  std::optional<uint64_t> steps;
  std::optional<uint64_t> seed;
  std::optional<uint32_t> num_envs;
  std::optional<uint32_t> envs_per_runner;
  std::vector<std::string> overrides;  // "a.b=c", applied after all other flags.
  std::string resume = "auto";
  std::string runners = "auto";  // Runner threads on this machine, or "auto".
  uint32_t actors = 1;           // Actor processes that share the runners; 0 = none (`skein head`). At least
                                 // one is started for each learner.
  uint32_t learners = 1;         // Ranks on this machine; 0 = started elsewhere (`skein head`).
  std::string device;            // learner.device
  std::string callbacks;         // callbacks.python
  struct Init {
    std::string from;        // learner.init_from
    bool optimizer = false;  // learner.init_optimizer
  } init;
  struct Host {
    std::string bind = "127.0.0.1";
    std::string announce;  // Name under which others reach `bind`; empty = determined automatically.
  } host;
  struct Ports {
    int coordinator = 0;
    int http = 0;
    int data = 0;  // Of rank 0; rank r uses this + r.
  } ports;         // 0 = free ones.
  // How this session begins and ends.
  struct Session {
    bool waits_for_resources = false;  // While other runs have what `resources` asks for. false: that is an error.
    uint64_t ends_at_step = 0;         // Short of total_steps; 0 = no.
    bool no_eval = false;              // Ends without test episodes.
    bool ends_with_parent = false;     // Orderly, when the parent process ends: for what starts trainings itself.
  } session;
};

struct LaunchPlan {
  v1::RunConfig config;  // Resolved and valid.
  ResumeMode resume = ResumeMode::kAuto;
  bool on_device = false;               // Environments step on the learner's device: neither actors nor workers.
  std::vector<uint32_t> actor_runners;  // Runner threads of each actor process.
  uint32_t learners = 1;                // Ranks to start here.
  std::vector<std::string> notes;       // Messages for the user, shown before anything starts.
};

// The sizes with which a run began.
struct RunSizes {
  uint32_t runners = 1;
  uint32_t envs_per_runner = 1;
  uint32_t num_envs = 1;
};

// Returns the sizes of the run of this configuration that is to be continued; nullopt = the run is new.
using SizesBefore = std::function<std::optional<RunSizes>(const v1::RunConfig& config)>;

// A count of runners: a positive number, or "auto" = `automatic`. InvalidArgument otherwise.
absl::StatusOr<uint32_t> ParseRunners(const std::string& text, uint32_t automatic);

// A count of learners: a number from `least` to 4096, or "auto" = one for each of `gpus`, at least one. InvalidArgument
// otherwise.
absl::StatusOr<uint32_t> ParseLearners(const std::string& text, uint32_t least, uint32_t gpus);

// Splits `total` into `parts` that differ by at most one, larger ones first.
std::vector<uint32_t> SplitEvenly(uint32_t total, uint32_t parts);

// Merges recipe < file < flags < overrides, checks the result and the environment's id. Touches no file except the
// configuration's and the recipe's.
// With automatic runners and an open number of environments it takes the largest number of runners, up to `cores`, for
// which the number of environments divides steps_per_iteration. Mode overlapped uses two env groups for each of those
// runners, if their environments divide an iteration and each environment has at least 32 of its steps, in whole
// fragments. A run that `before` (may be empty) reports as continued keeps its environments whatever the runners. Each
// learner has at least one runner and one env group. InvalidArgument, NotFound: one line with the field, or with the
// flags and values that would fit.
absl::StatusOr<LaunchPlan> PlanLaunch(const LaunchOptions& options, uint32_t cores,
                                      const SizesBefore& before = nullptr);

// Returns a function that reads the sizes from the folder of the run that `options` continue.
SizesBefore SizesInRunFolder(const LaunchOptions& options);

// An address of this machine that others can reach: `host` itself unless it is a wildcard, else the first address of an
// interface that is up and not the loopback, else 127.0.0.1.
std::string AnnounceHost(const std::string& host);

}  // namespace skein
