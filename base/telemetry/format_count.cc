// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/format_count.h"

namespace skein {

std::string FormatCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

}  // namespace skein
