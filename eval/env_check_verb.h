// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"

namespace skein {

// Adds the verb `env check` to `app`. Parsing it sets *action to a function that checks an environment, prints the
// verdicts and returns the exit code: 0, or 65 where a point fails.
void AddEnvCheck(CLI::App* app, std::function<int()>* action);

}  // namespace skein
