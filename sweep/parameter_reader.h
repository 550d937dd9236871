// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"
#include "sweep/space.h"
#include "yaml-cpp/yaml.h"

namespace skein {

// Reads one parameter of a space: `path` at `key`, what may be tried at `node`. `earlier`: what a condition may name.
// `base`: each value and bound is tried on it. `source`: the file's name. InvalidArgument "source:line:column: ...".
absl::StatusOr<Parameter> ReadParameter(const std::string& path, const YAML::Node& key, const YAML::Node& node,
                                        const Space& earlier, const v1::RunConfig& base, const std::string& source);

// "unknown key 'a'; the nearest is 'b'".
std::string UnknownKeyOf(const std::string& key, const std::vector<std::string>& known);

}  // namespace skein
