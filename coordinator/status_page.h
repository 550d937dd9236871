// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "skein/v1/status.pb.h"

namespace skein {

// The run as one plain HTML page that reloads itself and is readable on a telephone. Whatever members report is
// escaped.
std::string StatusPage(const v1::StatusResponse& status);

}  // namespace skein
