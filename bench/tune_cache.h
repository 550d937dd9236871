// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "skein/v1/config.pb.h"

// What `skein tune` found out, for `--runners auto`. One JSON file for each user.
namespace skein {

// What a choice is good for.
struct TuneKey {
  std::string processor;         // Model name.
  uint32_t cores = 0;            // Of this node, that this process may use.
  std::string env;               // EnvConfig.id
  std::vector<uint32_t> hidden;  // ModelConfig.hidden
  std::string device;            // LearnerConfig.device
  std::string version;           // Of Skein.

  bool operator==(const TuneKey& other) const = default;
};

struct TuneChoice {
  uint32_t runners = 1;
  uint32_t envs_per_runner = 1;
  uint32_t num_envs = 0;            // Of the run that goes on; 0 = as many as these runners call for.
  double env_steps_per_second = 0;  // Measured.
  std::string source;               // For people: "by `skein tune` of 2026-01-31".
};

// Asks for a choice for a configuration; nullopt = there is none.
using TuneLookup = std::function<std::optional<TuneChoice>(const v1::RunConfig& config)>;

// Of this machine and build. REQUIRES: defaults applied.
TuneKey MakeTuneKey(const v1::RunConfig& config);

// $XDG_CACHE_HOME/skein/tune.json, else ~/.cache/skein/tune.json; empty if neither variable is set.
std::string TuneCachePath();

// The choice for `key`. Nullopt: there is none, or the file cannot be read.
std::optional<TuneChoice> FindTuned(const std::string& path, const TuneKey& key);
// The same for any network and device: the newest choice.
std::optional<TuneChoice> FindTunedForEnv(const std::string& path, const TuneKey& key);

// Keeps `choice`, made on `date` ("2026-01-31"), instead of the one before for `key`. A file that cannot be read is
// begun anew. PermissionDenied, ResourceExhausted: it cannot be written.
absl::Status StoreTuned(const std::string& path, const TuneKey& key, const TuneChoice& choice, const std::string& date);

}  // namespace skein
