// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_display.h"

#include <algorithm>

#include "base/process/message_text.h"

namespace skein {

void SweepDisplay::Erase() {
  if (lines_ > 0) std::fprintf(out_, "\x1b[%dA\x1b[J", lines_);
  lines_ = 0;
}

void SweepDisplay::Draw() {
  for (const std::string& line : table_) {
    std::fprintf(out_, "%s\n", line.substr(0, static_cast<size_t>(std::max(width_ - 1, 1))).c_str());
  }
  lines_ = static_cast<int>(table_.size());
}

void SweepDisplay::Say(const std::string& line) {
  if (width_ > 0) Erase();
  std::fprintf(out_, "%s\n", OneLine(line).c_str());
  if (width_ > 0) Draw();
  std::fflush(out_);
}

void SweepDisplay::Update(const std::vector<std::string>& table, absl::Duration now) {
  table_ = table;
  if (width_ > 0) {
    Erase();
    Draw();
  } else if (now >= next_line_ && !table.empty()) {
    std::fprintf(out_, "%s\n", table.front().c_str());
    next_line_ = now + line_period_;
  }
  std::fflush(out_);
}

}  // namespace skein
