// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "cli/run_directory.h"
#include "eval/evaluation_result.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Evaluates the newest checkpoint of a run in a separate process (skein-eval) and writes <run>/eval.json. Cancelled:
// `stop` was notified. Unavailable: `program_folder` has no skein-eval. Others: the error with which skein-eval ended.
absl::StatusOr<EvaluationResult> EvaluateRun(const std::string& program_folder, const RunDirectory& directory,
                                             const v1::RunConfig& config, const absl::Notification& stop);

}  // namespace skein
