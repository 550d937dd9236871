// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "base/process/shutdown.h"

// The verbs of skein-fit. Each function adds one to `app`; parsing it sets *action to a function that runs it.
namespace skein {

using FitAction = std::function<absl::Status(ShutdownSignal*)>;

void AddFit(CLI::App* app, FitAction* action);
void AddDetect(CLI::App* app, FitAction* action);

}  // namespace skein
