// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"
#include "base/process/shutdown.h"

namespace skein {

// Adds the verb `serve` to `app`. Parsing it sets *action to a function that serves until `signal` comes and returns
// the exit code. `signal` must outlive it.
void AddServe(CLI::App* app, ShutdownSignal* signal, std::function<int()>* action);

}  // namespace skein
