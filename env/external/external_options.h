// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "env/env.h"

namespace skein {

// Settings of environments that are no part of Skein (ExternalEnvConfig in config.proto).
struct ExternalOptions {
  std::string python = "python3";  // Program that runs python: environments.
  std::string arguments;           // JSON object, or empty.
  absl::Duration start_timeout = absl::Seconds(60);
  absl::Duration step_timeout = absl::Seconds(60);  // rollout.step_timeout_seconds; infinite if that is 0.
  uint32_t restarts = 20;                           // Of one server within ten minutes.
  std::optional<EnvSpec> spec;                      // What it said of itself when the run was planned.
  // Returns true once the environments are no longer needed: then every wait for a server ends. It is called about
  // every 20 ms of such a wait; a library is not waited for.
  std::function<bool()> given_up = [] { return false; };
};

}  // namespace skein
