// SPDX-License-Identifier: Apache-2.0
#include "cli/final_evaluation.h"

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "launch/child.h"

namespace skein {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kStopTimeout = absl::Seconds(2);

}  // namespace

absl::StatusOr<EvaluationResult> EvaluateRun(const std::string& program_folder, const RunDirectory& directory,
                                             const v1::RunConfig& config, const absl::Notification& stop) {
  const auto program = FindProgram(program_folder, "skein-eval");
  if (!program.ok()) return program.status();
  auto child = Child::Start(
      {.name = "evaluation",
       .program = *program,
       .arguments = {"--checkpoint", directory.path(), "--episodes", absl::StrCat(config.eval().episodes()), "--seed",
                     absl::StrCat(config.seed()), "--json", "--exit-with-parent"},
       .log_path = directory.log_path("eval"),
       .capture_stdout = true});
  if (!child.ok()) return child.status();
  absl::StatusOr<std::string> line = (*child)->process().ReadLine(kTick);
  while (absl::IsDeadlineExceeded(line.status())) {
    if (stop.HasBeenNotified()) {
      (*child)->Stop(kStopTimeout);
      return absl::CancelledError("evaluation was stopped");
    }
    line = (*child)->process().ReadLine(kTick);
  }
  const int code = (*child)->process().Wait(absl::InfiniteDuration()).value_or(0);
  if (code != 0) return (*child)->ExitStatus(code);
  if (!line.ok()) return absl::InternalError("evaluation ended without a result");
  const auto result = EvaluationFromJson(*line);
  if (!result.ok()) return result.status();
  if (absl::Status status = WriteFileAtomically(directory.eval_path(), *line + "\n"); !status.ok()) return status;
  return result;
}

}  // namespace skein
