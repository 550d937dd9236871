// SPDX-License-Identifier: Apache-2.0
#include "learner/network/torch_version.h"

#include <torch/version.h>

namespace skein {

std::string TorchVersion() { return TORCH_VERSION; }

}  // namespace skein
