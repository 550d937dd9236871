// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/config/config.h"
#include "tests/fuzz/targets.h"

namespace skein::fuzz {

namespace {

// As ApplyDefaults(), which reads each default from its text, at a hundredth of the time.
v1::RunConfig WithDefaults(const v1::RunConfig& config) {
  static const auto* const defaults = [] {
    auto* made = new v1::RunConfig;
    ApplyDefaults(made);
    return made;
  }();
  v1::RunConfig result = *defaults;
  if (config.model().hidden_size() > 0) result.mutable_model()->clear_hidden();
  result.MergeFrom(config);
  return result;
}

}  // namespace

bool FuzzConfig(absl::string_view input) {
  v1::RunConfig config;
  if (absl::StartsWith(input, "--set ")) {
    for (absl::string_view line : absl::StrSplit(input, '\n')) {
      if (!absl::ConsumePrefix(&line, "--set ")) continue;
      const absl::Status status = ApplyOverride(std::string(line), &config);
      Check(status.ok() || absl::IsInvalidArgument(status), "a bad assignment is InvalidArgument");
      if (!status.ok()) return false;
    }
  } else {
    const absl::Status status = MergeYaml(std::string(input), "run.yaml", &config);
    Check(status.ok() || absl::IsInvalidArgument(status), "a bad text is InvalidArgument");
    Check(status.ok() || absl::StartsWith(status.message(), "run.yaml:"), "it says where");
    if (!status.ok()) return false;
  }
  // What was read can be written and read again. Not tried each time: it takes longer than all the rest.
  static int reads = 0;
  if (reads++ % 8 == 0) {
    const std::string text = ToYaml(config);
    v1::RunConfig again;
    const absl::Status status = MergeYaml(text, "again.yaml", &again);
    Check(status.ok() && ToYaml(again) == text, "what is written is read back");
  }
  config = WithDefaults(config);
  if (config.rollout().num_envs() == 0) config.mutable_rollout()->set_num_envs(config.rollout().envs_per_runner());
  if (config.name().empty()) config.set_name("fuzz");
  return ValidateRunConfig(config).ok();
}

}  // namespace skein::fuzz
