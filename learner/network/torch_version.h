// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// Version of the LibTorch that this program was built with, e.g. "1.13.0".
std::string TorchVersion();

}  // namespace skein
