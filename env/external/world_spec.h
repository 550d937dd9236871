// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "skein/env/v1/environment.pb.h"

// Specs of external environments, converted and checked.   skein.env.v1.Spec <-> EnvSpec <-> a setting's text
// The EnvSpec has the given id. It is relocatable if its state can be saved.
namespace skein {

// Largest of each size of a Spec: more is a mistake, or does not fit into a message.
inline constexpr uint32_t kMostAgents = 4096, kMostNumbers = 1 << 20, kMostMetrics = 256;

// FailedPrecondition: the spec of the environment `id` is refused, and why.
absl::Status RefusedSpec(const std::string& id, const std::string& why);

// FailedPrecondition names the field that is out of range, and the numbers.
absl::StatusOr<EnvSpec> ReadSpec(const env::v1::Spec& spec, const std::string& id);
env::v1::Spec WriteSpec(const EnvSpec& spec);

// As one line of protobuf's text format, for env.external.spec.
std::string SpecText(const EnvSpec& spec);
// FailedPrecondition: no such text, or as ReadSpec.
absl::StatusOr<EnvSpec> ParseSpecText(const std::string& text, const std::string& id);

// OK if both are the same to a run. FailedPrecondition says what is not.
absl::Status CheckSameSpec(const EnvSpec& got, const EnvSpec& want);

}  // namespace skein
