// SPDX-License-Identifier: Apache-2.0
#include "cli/session_result.h"

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

}  // namespace skein
