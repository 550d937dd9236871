// SPDX-License-Identifier: Apache-2.0
#include "cli/launch_plan.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/config.h"
#include "env/registry.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr uint32_t kMaxRunners = 4096;
constexpr uint32_t kHeadRunners = 2;  // Runners of the one node that `skein head` counts on by default.

// JSON strings are YAML strings too.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> AllOverrides(const LaunchOptions& options) {
  std::vector<std::string> all;
  if (!options.env_id.empty()) all.push_back(absl::StrCat("env.id=", Quoted(options.env_id)));
  if (!options.name.empty()) all.push_back(absl::StrCat("name=", Quoted(options.name)));
  if (options.steps) all.push_back(absl::StrCat("total_steps=", *options.steps));
  if (options.seed) all.push_back(absl::StrCat("seed=", *options.seed));
  if (options.num_envs) all.push_back(absl::StrCat("rollout.num_envs=", *options.num_envs));
  if (options.envs_per_runner) all.push_back(absl::StrCat("rollout.envs_per_runner=", *options.envs_per_runner));
  all.insert(all.end(), options.overrides.begin(), options.overrides.end());
  return all;
}

}  // namespace

absl::StatusOr<ResumeMode> ParseResumeMode(const std::string& text) {
  for (ResumeMode mode : {ResumeMode::kAuto, ResumeMode::kMust, ResumeMode::kNever}) {
    if (text == ResumeModeName(mode)) return mode;
  }
  return absl::InvalidArgumentError(absl::StrCat("--resume: got '", text, "', want auto, must or never"));
}

const char* ResumeModeName(ResumeMode mode) {
  switch (mode) {
    case ResumeMode::kMust:
      return "must";
    case ResumeMode::kNever:
      return "never";
    case ResumeMode::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<uint32_t> ParseRunners(const std::string& text, uint32_t automatic) {
  if (text == "auto") return std::max(1u, automatic);
  uint32_t runners = 0;
  if (!absl::SimpleAtoi(text, &runners) || runners < 1 || runners > kMaxRunners) {
    return absl::InvalidArgumentError(
        absl::StrCat("--runners: got '", text, "', want auto or a number from 1 to ", kMaxRunners));
  }
  return runners;
}

std::vector<uint32_t> SplitEvenly(uint32_t total, uint32_t parts) {
  std::vector<uint32_t> split(parts);
  for (uint32_t i = 0; i < parts; ++i) split[i] = total / parts + (i < total % parts ? 1 : 0);
  return split;
}

absl::StatusOr<LaunchPlan> PlanLaunch(const LaunchOptions& options, uint32_t cores) {
  LaunchPlan plan;
  const auto resume = ParseResumeMode(options.resume);
  if (!resume.ok()) return resume.status();
  plan.resume = *resume;

  const bool automatic = options.runners == "auto";
  const auto wanted = ParseRunners(options.runners, options.actors == 0 ? kHeadRunners : cores);
  if (!wanted.ok()) return wanted.status();
  const std::vector<std::string> overrides = AllOverrides(options);
  absl::StatusOr<v1::RunConfig> config = LoadRunConfig(options.config_path, overrides, *wanted);
  for (uint32_t fewer = *wanted; automatic && !config.ok() && fewer > 1;) {
    const auto attempt = LoadRunConfig(options.config_path, overrides, --fewer);
    if (attempt.ok()) config = attempt;  // Otherwise the message about `wanted` stands.
  }
  if (!config.ok()) return config.status();
  plan.config = *std::move(config);

  if (absl::Status status = MakeEnv(plan.config.env().id()).status(); !status.ok()) return status;
  if (options.actors == 0) return plan;

  const uint32_t blocks = plan.config.rollout().num_envs() / plan.config.rollout().envs_per_runner();
  const uint32_t runners = std::min(*wanted, std::max(1u, blocks));
  if (!automatic && runners < *wanted) {
    plan.notes.push_back(absl::StrCat("note: using ", runners, " of ", *wanted,
                                      " runners: ", plan.config.rollout().num_envs(), " environments make ", blocks,
                                      " blocks of ", plan.config.rollout().envs_per_runner()));
  }
  if (options.actors > runners) {
    return absl::InvalidArgumentError(
        absl::StrCat("--actors: ", options.actors, " processes cannot share ", runners, " runners"));
  }
  plan.actor_runners = SplitEvenly(runners, options.actors);
  return plan;
}

std::string AnnounceHost(const std::string& host) {
  if (host != "0.0.0.0" && host != "::" && host != "[::]" && !host.empty()) return host;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return "127.0.0.1";
  std::string found = "127.0.0.1";
  for (const ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if ((i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text)) != nullptr) {
      found = text;
      break;
    }
  }
  freeifaddrs(interfaces);
  return found;
}

}  // namespace skein
