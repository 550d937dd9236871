// SPDX-License-Identifier: Apache-2.0
#include "env/transform/transform_json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace skein {
namespace {

// Enough digits to read back the same number.
std::string Number(double value) { return absl::StrFormat("%.17g", value); }

std::string Numbers(const std::vector<float>& values) {
  return absl::StrCat(
      "[",
      absl::StrJoin(values, ", ", [](std::string* out, float value) { absl::StrAppendFormat(out, "%.9g", value); }),
      "]");
}

std::string Bounds(const EnvSpec& spec) {
  return absl::StrCat("{\"low\": ", Numbers(spec.action_low), ", \"high\": ", Numbers(spec.action_high), "}");
}

std::string TransformJson(const Transform& transform) {
  const TransformOptions& options = transform.options;
  switch (options.kind) {
    case TransformOptions::Kind::kClip:
      return absl::StrCat("{\"clip\": ", Bounds(transform.inner), "}");
    case TransformOptions::Kind::kScale:
      return absl::StrCat("{\"scale\": ", Bounds(transform.inner), "}");
    case TransformOptions::Kind::kSquash:
      return absl::StrCat("{\"squash\": ", Bounds(transform.inner), "}");
    case TransformOptions::Kind::kStack:
      return absl::StrCat("{\"stack\": ", options.count, "}");
    case TransformOptions::Kind::kHide:
      return absl::StrCat("{\"hide\": {\"keep\": [", absl::StrJoin(transform.kept, ", "),
                          "], \"of\": ", transform.inner.obs_size, "}}");
    case TransformOptions::Kind::kTimeLimit:
      return absl::StrCat("{\"time_limit\": ", options.count, "}");
    case TransformOptions::Kind::kRewardScale:
      return absl::StrCat("{\"reward_scale\": ", Number(options.factor), "}");
    case TransformOptions::Kind::kRewardClip:
      return absl::StrCat("{\"reward_clip\": [", Number(options.low), ", ", Number(options.high), "]}");
  }
  return "{}";
}

}  // namespace

std::string TransformsJson(const std::vector<Transform>& transforms) {
  return absl::StrCat("[",
                      absl::StrJoin(transforms, ", ",
                                    [](std::string* out, const Transform& transform) {
                                      absl::StrAppend(out, TransformJson(transform));
                                    }),
                      "]");
}

}  // namespace skein
