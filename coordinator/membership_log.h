// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "coordinator/coordinator_state.h"

namespace skein {

// Who joined, left or fell silent: a line of the log for people,
void LogChange(const MembershipChange& change);
// and an event of the history for tests (base/history_recorder.h), if there is one.
void RecordChange(const MembershipChange& change);

}  // namespace skein
