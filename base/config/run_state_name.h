// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "skein/v1/status.pb.h"

namespace skein {

// Returns the name of a state as people read it: RUN_STATE_WAITING_FOR_DATA is "waiting_for_data". A value that this
// version does not know is its number.
std::string RunStateName(v1::RunState state);

}  // namespace skein
