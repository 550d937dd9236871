// SPDX-License-Identifier: Apache-2.0
#include "bench/progress_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/telemetry/format_seconds.h"

namespace skein {

void ProgressLine::Show(const std::string& text, absl::Duration left) {
  if (width_ == 0) return;
  std::string line = text;
  if (left >= absl::ZeroDuration()) {
    absl::StrAppend(&line, ", about ", FormatSeconds(std::ceil(absl::ToDoubleSeconds(left))), " left");
  }
  line.resize(std::min(line.size(), static_cast<size_t>(width_ - 1)));
  std::fprintf(out_, "\r\033[K%s", line.c_str());
  std::fflush(out_);
  shown_ = true;
}

void ProgressLine::Clear() {
  if (!shown_) return;
  std::fprintf(out_, "\r\033[K");
  std::fflush(out_);
  shown_ = false;
}

}  // namespace skein
