// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/v1/status.pb.h"

// A run's members as text for people: what does not fit its column is cut, and no control character that a member says
// (base/telemetry/printable.h) reaches the terminal. Pure functions.
namespace skein {

// "draining", "silent" (for 3 s and more), "no learner", "degraded" (actor: its data have not passed for longer than a
// lease), "starving" (learner: for 1 s and more), or "up".
std::string MemberState(const v1::MemberStatus& member);

// Actor: versions that the newest policy it has is behind the newest one published, by reports that may be a heartbeat
// apart; nullopt: it has none, or is no actor.
std::optional<uint64_t> MemberLag(const v1::StatusResponse& status, const v1::MemberStatus& member);

// Where its time went, "env_step 61%  wait 30%", the longest stage first and those below one percent left out: since
// `before`, an earlier report of the same member, or since it started if that is nullptr. "-": nowhere.
std::string FormatStages(const v1::MemberReport& report, const v1::MemberReport* before);

// `skein status`: a table with all there is to say, then the members' errors.
std::string FormatMembers(const v1::StatusResponse& status);

// `skein top`: the run, then a table of its members and their errors, `before` an earlier status of the same run or
// nullptr. At most `height` lines of at most `width` columns; the last one says how many members do not fit.
std::vector<std::string> FormatTop(const v1::StatusResponse& status, const v1::StatusResponse* before, int width,
                                   int height);

}  // namespace skein
