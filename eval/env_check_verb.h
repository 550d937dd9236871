// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"
#include "base/process/shutdown.h"

namespace skein {

// Adds the verb `env check` to `app`. Parsing it sets *action to a function that checks an environment, prints the
// verdicts and returns the exit code: 0, 65 where a point fails, or 75 where *signal came first: then servers that it
// started have ended.
void AddEnvCheck(CLI::App* app, ShutdownSignal* signal, std::function<int()>* action);

}  // namespace skein
