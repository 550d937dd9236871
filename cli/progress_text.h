// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/v1/status.pb.h"

// Formats a run's status as text. Pure functions.
namespace skein {

// The width of what is not a terminal.
inline constexpr int kUnlimitedWidth = 100000;

// The first error that the run has reported, printable; empty: none.
std::string FirstError(const v1::StatusResponse& status);

std::string FormatBar(double share, int width);  // 0.5, 8 -> "[####----]"; share is clamped to [0, 1]

// What the display shows beyond the coordinator's status.
struct ProgressNotes {
  uint64_t actor_restarts = 0;
  std::string waiting_hint;  // Advice shown while no data arrive; empty = none.
};

// `line` as lines of at most `width` columns, the later ones indented by two; broken between words, where it can be
// between those that two spaces part. A word that is longer is broken where a line ends. Nothing is left out.
std::vector<std::string> WrapLine(const std::string& line, int width);

// The block redrawn in place: bar, rates, return, members, first error if any. Lines have at most `width` columns;
// longer ones are wrapped.
std::vector<std::string> FormatProgressBlock(const v1::StatusResponse& status, const ProgressNotes& notes, int width);

// The same on one line, for logs.
std::string FormatProgressLine(const v1::StatusResponse& status, const ProgressNotes& notes);

// `skein status`: the run, then a table of its members, in lines of at most `width` columns. Columns of the table for
// which there is no room are named below it.
std::string FormatStatusTable(const v1::StatusResponse& status, int width = kUnlimitedWidth);

// "collected 12 = trained 10 + stale 0 + rejected 0 + lost 2", and "+ pending N" unless that is 0.
std::string FormatStepAccount(const v1::StepAccount& account);

}  // namespace skein
