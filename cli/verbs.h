// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"

// The verbs of the skein command. Each function adds one verb to `app`. Parsing the verb sets *action to a function
// that runs it and returns the exit code.
namespace skein {

using Action = std::function<int()>;

void AddTrain(CLI::App* app, Action* action);
void AddHead(CLI::App* app, Action* action);
void AddSweep(CLI::App* app, Action* action);
void AddWorker(CLI::App* app, Action* action);
void AddStatus(CLI::App* app, Action* action);
void AddTop(CLI::App* app, Action* action);
void AddDrain(CLI::App* app, Action* action);
void AddRuns(CLI::App* app, Action* action);
// eval, export, serve, fit, detect, bench and tune, which pass their whole command line to skein-eval, skein-policy,
// skein-fit or skein-bench.
void AddProgramVerbs(CLI::App* app, Action* action);
void AddEnvs(CLI::App* app, Action* action);
void AddResources(CLI::App* app, Action* action);
void AddCerts(CLI::App* app, Action* action);
void AddCompletion(CLI::App* app, Action* action);
// For developers; the help does not show it.
void AddCheckHistory(CLI::App* app, Action* action);

}  // namespace skein
