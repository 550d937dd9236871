// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "CLI/App.hpp"
#include "CLI/Validators.hpp"

namespace skein {

// Parses the command line. nullopt: continue. Otherwise the program must exit with this code: 0 after printing help or
// the version, 64 after printing one line on standard error that says what is wrong and which --help to use.
std::optional<int> ParseArguments(CLI::App& app, int argc, char** argv);

// Accepts only decimal digits, for numbers from 0 to 2^64 - 1.
CLI::Validator WholeNumber();

// Accepts numbers from `min` to `max`; unlike CLI::Range it rejects "nan".
CLI::Validator NumberWithin(double min, double max);

}  // namespace skein
