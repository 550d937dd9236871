// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Validators.hpp"
#include "base/command/version.h"

namespace skein {

// Parses a program's command line. nullopt: continue. Otherwise the program must exit with this code: 0 after printing
// the help, the version (with `libraries`, version.h), or what developers' flags ask for (--print-flags: the verbs and
// flags as JSON, command_table.h; --print-man-page); 64 after printing one line on standard error that says what is
// wrong, the nearest verb, flag, value or setting, and which --help to use; 74 if standard output cannot be written.
std::optional<int> ParseArguments(CLI::App& app, int argc, char** argv,
                                  const std::vector<LibraryVersion>& libraries = {});

// Accepts decimal digits, for numbers from `least` to 2^64 - 1, and numbers with an exponent that are whole
// (1e6, 2.5e5).
CLI::Validator WholeNumber(uint64_t least = 0);

// Accepts one of these words; a message about another one names the nearest. Help and completion show them.
CLI::Validator OneOf(std::vector<std::string> words);

// Accepts numbers from `min` to `max`; unlike CLI::Range it rejects "nan".
CLI::Validator NumberWithin(double min, double max);

}  // namespace skein
