// SPDX-License-Identifier: Apache-2.0
#include "env/external/world_spec.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/process/message_text.h"
#include "google/protobuf/text_format.h"

namespace skein {
namespace {

constexpr size_t kLongestName = 64;

bool IsMetricName(const std::string& name) {
  if (name.empty() || name.size() > kLongestName || !absl::ascii_islower(name[0])) return false;
  for (const char c : name) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '_') return false;
  }
  return true;
}

// What is wrong with the bounds of continuous actions, or empty.
std::string BoundsProblem(const env::v1::Spec& spec) {
  const auto size = static_cast<int>(spec.action_size());
  if (spec.action_low_size() != size || spec.action_high_size() != size) {
    return absl::StrCat("action_low and action_high have ", spec.action_low_size(), " and ", spec.action_high_size(),
                        " numbers, want ", size);
  }
  for (int i = 0; i < size; ++i) {
    const float low = spec.action_low(i), high = spec.action_high(i);
    if (std::isfinite(low) && std::isfinite(high) && low < high) continue;
    return absl::StrCat("the bounds of action ", i, " are ", low, " and ", high, "; want finite ones, the lower first");
  }
  return "";
}

}  // namespace

absl::Status RefusedSpec(const std::string& id, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(id, ": its spec is refused: ", why));
}

absl::StatusOr<EnvSpec> ReadSpec(const env::v1::Spec& spec, const std::string& id) {
  const auto out_of_range = [&](const char* field, uint64_t got, uint64_t least, uint64_t most) {
    return RefusedSpec(id, absl::StrCat(field, " is ", got, ", want ", least, " to ", most));
  };
  if (spec.num_agents() < 1 || spec.num_agents() > kMostAgents) {
    return out_of_range("num_agents", spec.num_agents(), 1, kMostAgents);
  }
  const uint64_t most = kMostNumbers / spec.num_agents();
  if (spec.obs_size() < 1 || spec.obs_size() > most) return out_of_range("obs_size", spec.obs_size(), 1, most);
  if (spec.action_size() < 1 || spec.action_size() > most) {
    return out_of_range("action_size", spec.action_size(), 1, most);
  }
  if (spec.global_state_size() > kMostNumbers) {
    return out_of_range("global_state_size", spec.global_state_size(), 0, kMostNumbers);
  }
  if (spec.max_episode_steps() > 100000000) {
    return out_of_range("max_episode_steps", spec.max_episode_steps(), 0, 100000000);
  }
  if (static_cast<size_t>(spec.episode_metrics_size()) > kMostMetrics) {
    return out_of_range("the number of episode_metrics", static_cast<uint64_t>(spec.episode_metrics_size()), 0,
                        kMostMetrics);
  }
  for (const std::string& name : spec.episode_metrics()) {
    if (IsMetricName(name)) continue;
    return RefusedSpec(id, absl::StrCat("episode_metrics has ", Quoted(name), "; want names like distance_to_goal"));
  }
  if (spec.state_size() > kMostNumbers) return out_of_range("state_size", spec.state_size(), 0, kMostNumbers);
  if (!std::isfinite(spec.reward_threshold())) return RefusedSpec(id, "reward_threshold is not finite");
  if (!spec.discrete()) {
    if (const std::string problem = BoundsProblem(spec); !problem.empty()) return RefusedSpec(id, problem);
  }
  EnvSpec read;
  read.id = id;
  read.num_agents = static_cast<int>(spec.num_agents());
  read.obs_size = static_cast<int>(spec.obs_size());
  read.discrete = spec.discrete();
  read.action_size = static_cast<int>(spec.action_size());
  if (!read.discrete) {
    read.action_low.assign(spec.action_low().begin(), spec.action_low().end());
    read.action_high.assign(spec.action_high().begin(), spec.action_high().end());
  }
  read.global_state_size = static_cast<int>(spec.global_state_size());
  read.max_episode_steps = static_cast<int>(spec.max_episode_steps());
  read.state_size = static_cast<int>(spec.state_size());
  read.relocatable = read.state_size > 0;
  read.reward_threshold = spec.reward_threshold();
  read.episode_metrics.assign(spec.episode_metrics().begin(), spec.episode_metrics().end());
  return read;
}

env::v1::Spec WriteSpec(const EnvSpec& spec) {
  env::v1::Spec written;
  written.set_num_agents(static_cast<uint32_t>(spec.num_agents));
  written.set_obs_size(static_cast<uint32_t>(spec.obs_size));
  written.set_discrete(spec.discrete);
  written.set_action_size(static_cast<uint32_t>(spec.action_size));
  written.mutable_action_low()->Assign(spec.action_low.begin(), spec.action_low.end());
  written.mutable_action_high()->Assign(spec.action_high.begin(), spec.action_high.end());
  written.set_global_state_size(static_cast<uint32_t>(spec.global_state_size));
  written.set_max_episode_steps(static_cast<uint32_t>(spec.max_episode_steps));
  written.set_state_size(static_cast<uint32_t>(spec.state_size));
  written.set_reward_threshold(spec.reward_threshold);
  written.mutable_episode_metrics()->Assign(spec.episode_metrics.begin(), spec.episode_metrics.end());
  return written;
}

std::string SpecText(const EnvSpec& spec) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(WriteSpec(spec), &text);
  return std::string(absl::StripAsciiWhitespace(text));
}

absl::StatusOr<EnvSpec> ParseSpecText(const std::string& text, const std::string& id) {
  env::v1::Spec spec;
  if (!google::protobuf::TextFormat::ParseFromString(text, &spec)) {
    return RefusedSpec(id, absl::StrCat("env.external.spec is ", Quoted(text), "; leave it to skein"));
  }
  return ReadSpec(spec, id);
}

absl::Status CheckSameSpec(const EnvSpec& got, const EnvSpec& want) {
  const std::string one = SpecText(got), other = SpecText(want);
  if (one == other) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(want.id,
                                                    ": the environment is another one than when the run was "
                                                    "planned: it says {",
                                                    one, "}, the run has {", other, "}"));
}

}  // namespace skein
