// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace skein {

// A file that the coordinator serves as it is; compiled into the program, alive as long as it.
struct StatusPageFile {
  const char* path;  // "/page/skein.js"
  const char* content_type;
  absl::string_view bytes;
};

// The status page at "/", all that it needs (style, script, charting library) and the documentation it links to. The
// page asks only the coordinator, for /api/status and /api/history; what members report is shown as text.
const std::vector<StatusPageFile>& StatusPageFiles();

}  // namespace skein
