// SPDX-License-Identifier: Apache-2.0
#include "cli/session_result.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/process/file.h"
#include "nlohmann/json.hpp"

namespace skein {

std::string ToJson(const SessionResult& result, int exit_code) {
  nlohmann::ordered_json json = {{"run_directory", result.run_directory},
                                 {"exit_code", exit_code},
                                 {"checkpoint", nullptr},
                                 {"digest", nullptr},
                                 {"env_steps", nullptr},
                                 {"evaluation", nullptr}};
  if (result.checkpoint) {
    json["checkpoint"] = result.checkpoint->path;
    json["digest"] = result.checkpoint->digest;
    json["env_steps"] = result.checkpoint->env_steps;
    const std::string text = ReadFile(result.run_directory + "/eval.json").value_or("");
    const auto evaluation = nlohmann::ordered_json::parse(text, nullptr, false);
    if (evaluation.is_object() && evaluation.value("digest", "") == result.checkpoint->digest) {
      json["evaluation"] = evaluation;
    }
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

DivertedOutput::DivertedOutput() {
  std::cout.flush();
  std::fflush(stdout);
  output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

DivertedOutput::~DivertedOutput() {
  std::cout.flush();
  std::fflush(stdout);
  if (output_ < 0) {
    close(STDOUT_FILENO);
    return;
  }
  dup2(output_, STDOUT_FILENO);
  close(output_);
}

}  // namespace skein
