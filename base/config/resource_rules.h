// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/resource_share.h"
#include "skein/v1/config.pb.h"

// The rules of shares of a machine (RunConfig.resources).
namespace skein {

// Bytes of "2GiB", "512 MiB", "1.5GB" or "1000000". InvalidArgument: something else, or not at least one byte.
absl::StatusOr<uint64_t> ParseMemorySize(const std::string& text);

// InvalidArgument: names the setting of `share`, which is at `path`, that is no size, is too small or no whole GPU.
absl::Status CheckShare(const v1::ShareConfig& share, const std::string& path);

// InvalidArgument: names the setting that is no size, is too small, or asks for what such a process cannot use.
absl::Status CheckResources(const v1::RunConfig& config);

// REQUIRES: CheckShare() with that path; of a configuration CheckResources().
ResourceShare ShareOf(const v1::ShareConfig& config, const std::string& path);
ResourceShare ActorShare(const v1::RunConfig& config);
ResourceShare LearnerShare(const v1::RunConfig& config);

}  // namespace skein
