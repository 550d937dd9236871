// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "skein/v1/learner_service.pb.h"

namespace skein {

// Checks that the actor that sent `hello` belongs to run `run_id` with environment `spec`.
// InvalidArgument: the id or generation is not valid. FailedPrecondition: another run, protocol or environment.
absl::Status CheckHello(const v1::Hello& hello, const std::string& run_id, const v1::EnvSpecInfo& spec);

}  // namespace skein
