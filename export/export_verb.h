// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"

namespace skein {

// Adds the verb `export` to `app`. Parsing it sets *action to a function that runs it and returns the exit code.
void AddExport(CLI::App* app, std::function<int()>* action);

}  // namespace skein
