// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/vector_env.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The environments that one runner of this run steps. Pure. REQUIRES: defaults applied to `config` and validated.
VectorEnv::Options RunnerEnvOptions(const v1::RunConfig& config);

// New ones, with the faults that SKEIN_FAULTS asks for. Errors as VectorEnv::Make. Internal: one threw while it was
// built.
absl::StatusOr<std::unique_ptr<VectorEnv>> MakeRunnerEnv(const v1::RunConfig& config);

}  // namespace skein
