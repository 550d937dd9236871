// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/v1/status.pb.h"

// Formats a run's members as text. Text too long for its column is cut, and control characters in members' texts are
// not printed (base/telemetry/printable.h). Pure functions.
namespace skein {

// "draining", "silent" (no heartbeat for 3 s), "no learner", "degraded" (actor: its data have not arrived for longer
// than a lease), "starving" (learner: has waited for data for 1 s), or "up".
std::string MemberState(const v1::MemberStatus& member);

// By how many versions an actor's newest policy is behind the newest published one; the reports compared may be one
// heartbeat apart. nullopt: not an actor, or it has no policy.
std::optional<uint64_t> MemberLag(const v1::StatusResponse& status, const v1::MemberStatus& member);

// Shares of the member's time by stage, "env_step 61%  wait 30%", the largest first, without stages below one percent.
// Counted since `before`, an earlier report of the same member, or since its start if that is nullptr. "-" if no time
// was recorded.
std::string FormatStages(const v1::MemberReport& report, const v1::MemberReport* before);

// `skein status`: a table of the members in lines of at most `width` columns, then their errors. Where there is no room
// for a column of the table, a line below it says so.
std::string FormatMembers(const v1::StatusResponse& status, int width);

// `skein top`: the run, then a table of its members and their errors. `before` is an earlier status of the same run, or
// nullptr. At most `height` lines of at most `width` columns; a line says which columns there is no room for, and the
// last one how many lines do not fit.
std::vector<std::string> FormatTop(const v1::StatusResponse& status, const v1::StatusResponse* before, int width,
                                   int height);

}  // namespace skein
