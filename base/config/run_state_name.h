// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "skein/v1/status.pb.h"

namespace skein {

// RUN_STATE_WAITING_FOR_DATA -> "waiting_for_data"; a value of another version -> its number.
std::string RunStateName(v1::RunState state);

}  // namespace skein
