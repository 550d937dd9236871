// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/tune.h"
#include "skein/v1/config.pb.h"

// The settings that `skein tune` varies for each kind of work: steps or directions, by actors or on a device. Pure.
namespace skein {

inline constexpr char kRunnersFlag[] = "runners";  // Among TuneSettings; all others are settings.

// Of a run with this configuration on a machine with so many cores; it begins with a runner for each.
//   steps by actors       environments of a runner, runners
//   directions by actors  directions of a work order, runners, directions
//   steps on a device     worlds
//   directions on a device   worlds, directions, parts in which they are played
// REQUIRES: defaults are applied. InvalidArgument: no environments divide rollout.steps_per_iteration.
absl::StatusOr<TuneSpace> MakeTuneSpace(const v1::RunConfig& config, uint32_t cores);

// As flags of `skein train`: "--runners 2 --envs 32 --set directions.dir_chunk=2".
std::string AsFlags(const TuneSettings& settings);

// Those of them that are settings, as overrides "a.b=value".
std::vector<std::string> AsOverrides(const TuneSettings& settings);

// A configuration file with all of `user`'s settings and `overrides` after them; `comment` has a line for each element.
// Errors as ApplyOverride.
absl::StatusOr<std::string> ProfileText(const v1::RunConfig& user, const std::vector<std::string>& overrides,
                                        const std::vector<std::string>& comment);

}  // namespace skein
