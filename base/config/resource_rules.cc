// SPDX-License-Identifier: Apache-2.0
#include "base/config/resource_rules.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/config/config_reflection.h"
#include "base/process/message_text.h"

namespace skein {
namespace {

constexpr char kActor[] = "resources.actor";
constexpr char kLearner[] = "resources.learner";
constexpr uint64_t kLeastMemory = uint64_t{64} << 20;

constexpr std::pair<const char*, double> kUnits[] = {{"TiB", 1099511627776.0},
                                                     {"GiB", 1073741824.0},
                                                     {"MiB", 1048576.0},
                                                     {"KiB", 1024.0},
                                                     {"TB", 1e12},
                                                     {"GB", 1e9},
                                                     {"MB", 1e6},
                                                     {"KB", 1e3},
                                                     {"B", 1.0}};

}  // namespace

absl::StatusOr<uint64_t> ParseMemorySize(const std::string& text) {
  absl::string_view number = text;
  double factor = 1;
  for (const auto& [unit, bytes] : kUnits) {
    if (!absl::ConsumeSuffix(&number, unit)) continue;
    factor = bytes;
    break;
  }
  double value = 0;
  const bool plain = !absl::StrContains(number, 'x') && !absl::StrContains(number, 'n');  // Neither 0x10 nor nan.
  if (!plain || !absl::SimpleAtod(number, &value) || !(value * factor >= 1) || value * factor > 9e18) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", Quoted(text), ", want a size such as 512MiB or 2GiB, or a number of bytes"));
  }
  return static_cast<uint64_t>(value * factor);
}

absl::Status CheckShare(const v1::ShareConfig& share, const std::string& path) {
  if (share.has_memory()) {
    const auto bytes = ParseMemorySize(share.memory());
    if (!bytes.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ".memory: ", bytes.status().message()));
    if (*bytes < kLeastMemory) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".memory: got ", Quoted(share.memory()), ", want at least 64MiB"));
    }
  }
  if (share.gpus() > 1 && share.gpus() != std::floor(share.gpus())) {
    return absl::InvalidArgumentError(absl::StrCat(path, ".gpus: got ", config_reflection::NumberText(share.gpus()),
                                                   ", want a share below 1 or a whole number"));
  }
  return absl::OkStatus();
}

absl::Status CheckResources(const v1::RunConfig& config) {
  const v1::ResourcesConfig& resources = config.resources();
  if (absl::Status status = CheckShare(resources.actor(), kActor); !status.ok()) return status;
  if (absl::Status status = CheckShare(resources.learner(), kLearner); !status.ok()) return status;
  if (resources.learner().gpus() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(kLearner, ".gpus: got ",
                                                   config_reflection::NumberText(resources.learner().gpus()),
                                                   ", and a learner computes on one GPU; use --learners for more"));
  }
  if (resources.learner().has_gpus() && resources.learner().gpus() == 0 &&
      absl::StartsWith(config.learner().device(), "cuda")) {
    return absl::InvalidArgumentError(absl::StrCat(kLearner, ".gpus: is 0, but learner.device is ",
                                                   config.learner().device(), "; give it a share, or say cpu"));
  }
  return absl::OkStatus();
}

ResourceShare ShareOf(const v1::ShareConfig& config, const std::string& path) {
  ResourceShare share;
  share.setting = path;
  if (config.has_cpus()) share.cpus = config.cpus();
  if (config.has_gpus()) share.gpus = config.gpus();
  if (config.has_memory()) share.memory_bytes = ParseMemorySize(config.memory()).value_or(kLeastMemory);
  return share;
}

ResourceShare ActorShare(const v1::RunConfig& config) { return ShareOf(config.resources().actor(), kActor); }
ResourceShare LearnerShare(const v1::RunConfig& config) { return ShareOf(config.resources().learner(), kLearner); }

}  // namespace skein
