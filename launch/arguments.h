// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "CLI/App.hpp"
#include "CLI/Validators.hpp"

namespace skein {

// Parses the command line. nullopt: go on. Otherwise the program ends with the code: 0 after printing help or the
// version, 64 after one line on standard error that says what is wrong and which --help to ask.
std::optional<int> ParseArguments(CLI::App& app, int argc, char** argv);

// Lets a flag take decimal digits only, for numbers from 0 to 2^64 - 1.
CLI::Validator WholeNumber();

// Lets a flag take numbers from `min` to `max`; unlike CLI::Range, "nan" is none.
CLI::Validator NumberWithin(double min, double max);

}  // namespace skein
