// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launch/launch_plan.h"

namespace skein {

// What `skein train` and `skein head` do, once their flags are read:
//   plan -> run directory -> supervise until the target or a signal -> evaluate -> report
// Takes SIGINT and SIGTERM over; call it before any other thread is started. `command` stands before errors, e.g.
// "skein train". `program_folder` holds the programs it starts. Returns the exit code.
int RunTraining(const LaunchOptions& options, const std::string& command, const std::string& program_folder);

}  // namespace skein
