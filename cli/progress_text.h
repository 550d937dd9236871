// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/v1/status.pb.h"

// Formats a run's status as text. Pure functions.
namespace skein {

std::string FormatBar(double share, int width);  // 0.5, 8 -> "[####----]"; share is clamped to [0, 1]

// What the display shows beyond the coordinator's status.
struct ProgressNotes {
  uint64_t actor_restarts = 0;
  std::string waiting_hint;  // Advice shown while no data arrive; empty = none.
};

// The block redrawn in place: bar, rates, return, members, first error if any. Lines have at most `width` columns.
std::vector<std::string> FormatProgressBlock(const v1::StatusResponse& status, const ProgressNotes& notes, int width);

// The same on one line, for logs.
std::string FormatProgressLine(const v1::StatusResponse& status, const ProgressNotes& notes);

// `skein status`: the run, then a table of its members.
std::string FormatStatusTable(const v1::StatusResponse& status);

// "collected 12 = trained 10 + stale 0 + rejected 0 + lost 2", and "+ pending N" unless that is 0.
std::string FormatStepAccount(const v1::StepAccount& account);

}  // namespace skein
