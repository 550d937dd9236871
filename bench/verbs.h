// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "base/process/shutdown.h"

// The verbs of `skein bench`. Each function adds one verb to `app`. Parsing the verb sets *action to a function that
// runs it.
namespace skein {

using BenchAction = std::function<absl::Status(const ShutdownSignal& shutdown)>;

void AddBenchActing(CLI::App* app, BenchAction* action);
void AddBenchArs(CLI::App* app, BenchAction* action);
void AddBenchDevice(CLI::App* app, BenchAction* action);
void AddBenchEnv(CLI::App* app, BenchAction* action);
void AddBenchFit(CLI::App* app, BenchAction* action);
void AddBenchServe(CLI::App* app, BenchAction* action);
void AddBenchRollout(CLI::App* app, BenchAction* action);
void AddBenchStream(CLI::App* app, BenchAction* action);
void AddBenchLearner(CLI::App* app, BenchAction* action);
void AddBenchTensor(CLI::App* app, BenchAction* action);
void AddBenchTrain(CLI::App* app, BenchAction* action);
// These two train with `skein train`.
void AddBenchScaling(CLI::App* app, BenchAction* action);
void AddBenchTune(CLI::App* app, BenchAction* action);

}  // namespace skein
