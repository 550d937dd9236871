// SPDX-License-Identifier: Apache-2.0
// The environments that have a tensor form. env/registry.cc marks the same ones, for programs without Torch.
#include "absl/strings/str_cat.h"
#include "env/registry.h"
#include "env/tensor/hidden_columns.h"
#include "env/tensor/tensor_cartpole.h"
#include "env/tensor/tensor_env.h"
#include "env/tensor/uav/tensor_world.h"

namespace skein {
namespace {

using Made = absl::StatusOr<std::unique_ptr<TensorEnv>>;

struct Entry {
  const char* id;
  Made (*make)(const TensorEnv::Options& options, const EnvOptions& env_options);
};

constexpr Entry kEntries[] = {
    {"CartPole-v1", MakeTensorCartPole},
    {"UavCover-v0", MakeTensorUavs<UavTask::kCover>},
    {"UavNavigate-v0", MakeTensorUavs<UavTask::kNavigate>},
};

// Without transforms.
Made MakePlain(const std::string& env_id, const TensorEnv::Options& options, const EnvOptions& env_options) {
  for (const Entry& entry : kEntries) {
    if (entry.id == env_id) return entry.make(options, env_options);
  }
  const absl::Status none = CheckTensorForm(env_id);
  return none.ok() ? absl::InternalError(absl::StrCat(env_id, " is marked as having a tensor form, and has none"))
                   : none;
}

}  // namespace

Made MakeTensorEnv(const std::string& env_id, const TensorEnv::Options& options, const EnvOptions& env_options) {
  Made env = MakePlain(env_id, options, env_options);
  for (const TransformOptions& transform : env_options.transforms) {
    if (!env.ok()) break;
    if (transform.kind != TransformOptions::Kind::kHide) {
      return absl::InvalidArgumentError(absl::StrCat(transform.setting, ": not with environments on the device"));
    }
    env = HideColumns(transform, options.device, *std::move(env));
  }
  return env;
}

}  // namespace skein
