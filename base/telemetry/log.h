// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "spdlog/spdlog.h"

// Logging is spdlog's default logger: SPDLOG-style calls, e.g. spdlog::info("joined as {}", id).
namespace skein {

// Sends the default logger to standard error, each line tagged with `program`; when `json_path` is not
// empty also to that file, one JSON object a line {"time","level","program","message"}.
// Level is info, or SKEIN_LOG (trace, debug, info, warn, error).
void InitLog(const std::string& program, const std::string& json_path = "");

}  // namespace skein
