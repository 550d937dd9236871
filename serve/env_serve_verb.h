// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"
#include "base/process/shutdown.h"

namespace skein {

// Adds the verb `serve` to `env`, the verb of env_check_verb.h. Parsing it sets *action to a function that serves
// environments until `signal` comes and returns the exit code. `signal` must outlive it.
void AddEnvServe(CLI::App* env, ShutdownSignal* signal, std::function<int()>* action);

}  // namespace skein
