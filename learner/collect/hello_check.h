// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "skein/v1/learner_service.pb.h"

namespace skein {

// Whether an actor that says `hello` belongs to run `run_id`, whose environment is `spec`.
// InvalidArgument: no actor has such an id or generation. FailedPrecondition: another run, protocol or environment.
absl::Status CheckHello(const v1::Hello& hello, const std::string& run_id, const v1::EnvSpecInfo& spec);

}  // namespace skein
