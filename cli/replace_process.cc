// SPDX-License-Identifier: Apache-2.0
#include "cli/replace_process.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/process/exit_code.h"
#include "launch/child.h"

namespace skein {

absl::Status ReplaceProcess(const std::string& folder, const std::string& name,
                            const std::vector<std::string>& arguments) {
  const auto program = FindProgram(folder, name);
  if (!program.ok()) return program.status();
  for (const std::string& variable : ThreadEnvironment(1)) {
    const size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 0);
  }
  std::vector<char*> argv = {const_cast<char*>(program->c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (FinishOutput(name.c_str(), kExitOk) != kExitOk) return absl::ResourceExhaustedError("not started");
  execv(program->c_str(), argv.data());
  return absl::InternalError(absl::StrCat("cannot start ", *program, ": ", std::generic_category().message(errno)));
}

}  // namespace skein
