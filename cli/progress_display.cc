// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_display.h"

#include "absl/strings/str_cat.h"
#include "base/process/message_text.h"
#include "base/telemetry/printable.h"

namespace skein {

void ProgressDisplay::Update(const v1::StatusResponse& status, const ProgressNotes& notes, absl::Duration now,
                             bool last) {
  for (const std::string& warning : status.progress().warnings()) {
    if (warned_.insert(warning).second) Say("warning: " + Printable(warning));
  }
  if (width_ == 0) {
    if (now < next_line_ && !last) return;
    next_line_ = now + line_period_;
    Say(FormatProgressLine(status, notes));
    return;
  }
  EraseBlock();
  block_.clear();
  // A line as wide as the terminal would wrap, so one column stays free.
  for (const std::string& line : FormatProgressBlock(status, notes, width_ - 1)) {
    absl::StrAppend(&block_, line, "\n");
    ++block_lines_;
  }
  std::fputs(block_.c_str(), out_);
  std::fflush(out_);
}

void ProgressDisplay::Say(const std::string& line) {
  const int lines = block_lines_;
  EraseBlock();
  std::fprintf(out_, "%s\n", EscapedLines(line).c_str());
  if (lines > 0) std::fputs(block_.c_str(), out_);
  block_lines_ = lines;
  std::fflush(out_);
}

void ProgressDisplay::Finish() { block_lines_ = 0; }

void ProgressDisplay::EraseBlock() {
  // Up by the block's lines, then clear to the end of the screen.
  if (block_lines_ > 0) std::fprintf(out_, "\x1b[%dA\x1b[J", block_lines_);
  block_lines_ = 0;
}

}  // namespace skein
