// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/launch_plan.h"
#include "skein/v1/config.pb.h"

// Texts that explain to the user the choices of a launch plan (LaunchPlan::notes).
namespace skein {

// How the number of runners came about, if it was not given. `before`: the sizes of the run that this continues.
std::string AutomaticNote(const std::optional<RunSizes>& before, uint32_t cores, uint32_t learners);

// The work of an iteration in mode on_device.
std::string DeviceNote(const v1::RunConfig& config);

// A note for each section or setting that `user` gives, with another value than its default, and that the run does not
// read; and one if the run ends before its last phase begins. `config`: all settings, with defaults applied.
std::vector<std::string> UnreadNotes(const v1::RunConfig& user, const v1::RunConfig& config);

// A note if the file `config_path`, without a recipe below it, and the flags leave the size of iterations open: it is
// the study's then, with which many tasks learn little. Empty: they do not, or the run has no such size. As above.
std::string SizesLeftOpenNote(const std::string& config_path, const v1::RunConfig& user, const v1::RunConfig& config);

}  // namespace skein
