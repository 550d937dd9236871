// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace skein {

// A file that the coordinator serves unchanged. Its bytes are compiled into the program and always valid.
struct StatusPageFile {
  const char* path;  // "/page/skein.js"
  const char* content_type;
  absl::string_view bytes;
};

// The files of the status page at "/": the page, all that it needs (style, script, charting library) and the
// documentation it links to. The page requests data from the coordinator only (/api/status and /api/history). Texts
// that members report are shown as plain text.
const std::vector<StatusPageFile>& StatusPageFiles();

}  // namespace skein
