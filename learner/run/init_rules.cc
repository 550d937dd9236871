// SPDX-License-Identifier: Apache-2.0
#include "learner/run/init_rules.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/config/config_reflection.h"

namespace skein {
namespace {

absl::Status CheckSame(const std::string& section, const std::string& name, const google::protobuf::Message& from,
                       const google::protobuf::Message& to) {
  const auto* const field = from.GetDescriptor()->FindFieldByName(name);
  const std::string before = config_reflection::ValueText(from, field), now = config_reflection::ValueText(to, field);
  if (before == now) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(section, ".", name, " is ", now, ", but the weights are of a run with ", before));
}

// What the network sees and says; not limits and rewards.
v1::EnvConfig OfTheNetwork(const v1::EnvConfig& config) {
  v1::EnvConfig kept;
  for (const v1::EnvTransform& transform : config.transforms()) {
    if (transform.has_clip() || transform.has_scale() || transform.has_squash() || transform.has_stack() ||
        transform.hide_size() > 0) {
      *kept.add_transforms() = transform;
    }
  }
  return kept;
}

}  // namespace

absl::Status CheckWeightsFit(const v1::RunConfig& from, const v1::RunConfig& to) {
  for (const char* name : {"activation", "normalize_observations", "normalize_returns"}) {
    if (absl::Status status = CheckSame("model", name, from.model(), to.model()); !status.ok()) return status;
  }
  if (absl::Status status = CheckSame("env", "hide", from.env(), to.env()); !status.ok()) return status;
  if (OfTheNetwork(from.env()).SerializeAsString() == OfTheNetwork(to.env()).SerializeAsString()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "env.transforms clips, scales, squashes, stacks or hides otherwise than in the run that the weights are of");
}

}  // namespace skein
