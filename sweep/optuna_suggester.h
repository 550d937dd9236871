// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process/json_line_process.h"
#include "sweep/scheduler.h"
#include "sweep/space_file.h"
#include "sweep/study.h"
#include "sweep/suggester.h"

namespace skein {

// One of Optuna's samplers, in a Python process of its own (optuna_helper.py). Suggestions equal those of Optuna called
// directly with the same seed and the same results in the same order, also after a crash.
class OptunaSuggester : public Suggester {
 public:
  struct Options {
    std::string journal;  // Whose trials the sampler is told at first.
    std::string folder;   // For the sampler's state and log/optuna.log.
  };
  // All references must outlive this. Unavailable: no Python, no Optuna, or what one of its samplers needs is missing
  // (says what to install). InvalidArgument: no such sampler, or options that it refuses (with the place in the file).
  static absl::StatusOr<std::unique_ptr<OptunaSuggester>> Start(const Options& options, const SweepFile& file,
                                                                const Scheduler& scheduler);

  absl::StatusOr<std::optional<Point>> Suggest(const std::vector<Trial>& trials) override;
  absl::Status Tell(const Trial& trial) override;

  const std::string& version() const { return version_; }

 private:
  OptunaSuggester(const SweepFile& file, const Scheduler& scheduler) : file_(file), scheduler_(scheduler) {}
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& request);

  const SweepFile& file_;
  const Scheduler& scheduler_;
  std::unique_ptr<JsonLineProcess> process_;
  std::string version_;
};

}  // namespace skein
