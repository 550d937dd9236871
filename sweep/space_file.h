// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/sweep.pb.h"
#include "sweep/space.h"

// Reads the file of `skein sweep --space`.   YAML text, base configuration -> SweepFile
namespace skein {

struct SweepFile {
  v1::SweepConfig config;  // With defaults, and a name.
  Space space;
  // "path:line:column", for what is found out later.
  std::string sampler_place, metric_place;
};

// `path`: for messages, and for the name of a sweep that gives none. `base`: the configuration whose settings are
// varied; each value and bound is tried on it. InvalidArgument "path:line:column: ...": syntax, an unknown key or
// setting (names the nearest), a value that its setting refuses, a setting that a sweep cannot vary, a condition on
// something that is not in the space, a constraint that cannot be read; a sampler that cannot do what the space has;
// seeds of the test among those of the search.
// `metrics`: the names that the metric may have, beside "update." and more. With eval. there is one rung only.
absl::StatusOr<SweepFile> ReadSweepFile(const std::string& text, const std::string& path, const v1::RunConfig& base,
                                        const std::vector<std::string>& metrics);

// InvalidArgument: no folder of that name can be made among the runs, or it would be a flag for a command.
absl::Status CheckSweepName(const std::string& name);

// What a journal is for: the space and what decides how trials are judged, as text. Two sweeps with the same may go on
// with one another's journal.
std::string Identity(const SweepFile& file, const v1::RunConfig& base);

}  // namespace skein
