// SPDX-License-Identifier: Apache-2.0
#include "learner/admission.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace skein {
namespace {

absl::Status FieldError(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tensors.", name, ": ", what));
}

constexpr int64_t kCountLimit = int64_t{1} << 32;

// Whether `value` is a whole number in [0, limit).
bool IsCount(double value, int64_t limit) {
  return value >= 0 && value < static_cast<double>(limit) && value == std::floor(value);
}

int64_t SizeOf(v1::DataType dtype) {
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT32:
    case v1::DATA_TYPE_INT32:
      return 4;
    case v1::DATA_TYPE_FLOAT64:
    case v1::DATA_TYPE_INT64:
      return 8;
    case v1::DATA_TYPE_UINT8:
      return 1;
    default:
      return 0;
  }
}

// Finds tensors of one batch and checks them against what they must be.
class Reader {
 public:
  explicit Reader(const v1::TrajectoryBatch& batch) : batch_(batch) {}

  absl::Status Find(const std::string& name, v1::DataType dtype, const std::vector<int64_t>& want,
                    const v1::Tensor** found) {
    const v1::Tensor* tensor = nullptr;
    for (const v1::Tensor& candidate : batch_.tensors()) {
      if (candidate.name() != name) continue;
      if (tensor != nullptr) return FieldError(name, "given twice");
      tensor = &candidate;
    }
    if (tensor == nullptr) return FieldError(name, "missing");
    if (tensor->dtype() != dtype) {
      return FieldError(
          name, absl::StrCat("dtype is ", v1::DataType_Name(tensor->dtype()), ", want ", v1::DataType_Name(dtype)));
    }
    bool fits = tensor->shape_size() == static_cast<int>(want.size());
    // Extents and product are kept under 2^31, so that the next product stays under 2^62.
    uint64_t elements = 1;
    const uint64_t bytes = tensor->data().size();
    for (int i = 0; fits && i < tensor->shape_size(); ++i) {
      const int64_t extent = tensor->shape(i);
      fits = extent >= 0 && extent == want[i] && static_cast<uint64_t>(extent) <= (uint64_t{1} << 31);
      if (fits) elements *= static_cast<uint64_t>(extent);
      fits = fits && elements <= (uint64_t{1} << 31);
    }
    if (!fits) {
      return FieldError(name, absl::StrCat("shape is [", absl::StrJoin(tensor->shape(), ", "), "], want [",
                                           absl::StrJoin(want, ", "), "]"));
    }
    if (elements * SizeOf(dtype) != bytes) {
      return FieldError(name,
                        absl::StrCat("has ", bytes, " bytes, its shape and dtype want ", elements * SizeOf(dtype)));
    }
    *found = tensor;
    return absl::OkStatus();
  }

  absl::Status Floats(const std::string& name, const std::vector<int64_t>& want, const float** data) {
    const v1::Tensor* tensor = nullptr;
    if (absl::Status s = Find(name, v1::DATA_TYPE_FLOAT32, want, &tensor); !s.ok()) return s;
    *data = reinterpret_cast<const float*>(tensor->data().data());
    const size_t count = tensor->data().size() / sizeof(float);
    // x * 0 is 0 for finite x and NaN otherwise; the sum tells whether any was not finite.
    float probe = 0;
    for (size_t i = 0; i < count; ++i) probe += (*data)[i] * 0.0f;
    if (probe != 0.0f || std::isnan(probe)) {
      size_t i = 0;
      while (i < count && std::isfinite((*data)[i])) ++i;
      return FieldError(name, absl::StrCat("element ", i, " is not finite"));
    }
    return absl::OkStatus();
  }

 private:
  const v1::TrajectoryBatch& batch_;
};

}  // namespace

absl::Status CheckBatch(const v1::TrajectoryBatch& batch, const BatchShape& shape, CheckedBatch* checked) {
  const int64_t T = shape.steps, E = shape.num_envs, A = shape.spec.num_agents(), O = shape.spec.obs_size();
  if (batch.steps() != T || batch.num_envs() != E) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps x num_envs is ", batch.steps(), " x ", batch.num_envs(), ", want ", T, " x ", E));
  }
  Reader reader(batch);
  const v1::Tensor* tensor = nullptr;
  if (absl::Status s = reader.Floats("obs", {T + 1, E, A, O}, &checked->obs); !s.ok()) return s;
  if (shape.spec.discrete()) {
    if (absl::Status s = reader.Find("action", v1::DATA_TYPE_INT64, {T, E, A, 1}, &tensor); !s.ok()) return s;
    checked->action_index = reinterpret_cast<const int64_t*>(tensor->data().data());
    for (int64_t i = 0; i < T * E * A; ++i) {
      if (checked->action_index[i] < 0 || checked->action_index[i] >= shape.spec.action_size()) {
        return FieldError("action", absl::StrCat("element ", i, " is ", checked->action_index[i], ", want 0 to ",
                                                 shape.spec.action_size() - 1));
      }
    }
  } else {
    if (absl::Status s = reader.Floats("action", {T, E, A, shape.spec.action_size()}, &checked->action); !s.ok())
      return s;
  }
  if (absl::Status s = reader.Floats("log_prob", {T, E, A}, &checked->log_prob); !s.ok()) return s;
  if (absl::Status s = reader.Floats("reward", {T, E, A}, &checked->reward); !s.ok()) return s;

  if (absl::Status s = reader.Find("terminated", v1::DATA_TYPE_UINT8, {T, E}, &tensor); !s.ok()) return s;
  checked->terminated = reinterpret_cast<const uint8_t*>(tensor->data().data());
  if (absl::Status s = reader.Find("truncated", v1::DATA_TYPE_UINT8, {T, E}, &tensor); !s.ok()) return s;
  checked->truncated = reinterpret_cast<const uint8_t*>(tensor->data().data());
  int64_t truncations = 0, episodes = 0;
  for (int64_t i = 0; i < T * E; ++i) {
    if (checked->terminated[i] + checked->truncated[i] > 1) {
      return FieldError("terminated",
                        absl::StrCat("element ", i, " is ", int{checked->terminated[i]}, " and truncated is ",
                                     int{checked->truncated[i]}, ", want 0 or 1 and not both 1"));
    }
    truncations += checked->truncated[i];
    episodes += checked->terminated[i] + checked->truncated[i];
  }
  checked->num_truncated = truncations;
  checked->num_episodes = episodes;
  if (absl::Status s = reader.Floats("final_obs", {truncations, A, O}, &checked->final_obs); !s.ok()) {
    return s;
  }
  if (absl::Status s = reader.Floats("episode_return", {episodes}, &checked->episode_return); !s.ok()) {
    return s;
  }
  if (absl::Status s = reader.Find("episode_length", v1::DATA_TYPE_INT64, {episodes}, &tensor); !s.ok()) return s;
  checked->episode_length = reinterpret_cast<const int64_t*>(tensor->data().data());

  if (absl::Status s = reader.Find("env_state", v1::DATA_TYPE_FLOAT64, {E, shape.env_state_size}, &tensor); !s.ok())
    return s;
  const double* state = reinterpret_cast<const double*>(tensor->data().data());
  for (size_t i = 0; i < tensor->data().size() / sizeof(double); ++i) {
    if (!std::isfinite(state[i])) return FieldError("env_state", absl::StrCat("element ", i, " is not finite"));
  }
  for (int64_t e = 0; e < E && shape.env_state_size >= 2; ++e) {
    // Row: episode, step, return so far, then the environment's own (see VectorEnv::SaveState).
    const double* row = state + e * shape.env_state_size;
    if (!IsCount(row[0], kCountLimit) ||
        !IsCount(row[1], shape.max_episode_steps > 0 ? shape.max_episode_steps : kCountLimit)) {
      return FieldError("env_state", absl::StrCat("environment ", e, " is at episode ", row[0], ", step ", row[1],
                                                  ", want whole numbers >= 0 and a step below ",
                                                  shape.max_episode_steps, " (0 = no limit)"));
    }
  }
  checked->env_state = tensor;
  return absl::OkStatus();
}

absl::Status CheckEnvSpec(const v1::EnvSpecInfo& got, const v1::EnvSpecInfo& want) {
  const auto differs = [](const std::string& field, const auto& g, const auto& w) {
    return absl::FailedPreconditionError(absl::StrCat("env_spec.", field, ": the actor has ", g, ", this run has ", w,
                                                      "; start it from the same release"));
  };
  if (got.env_id() != want.env_id()) return differs("env_id", got.env_id(), want.env_id());
  if (got.obs_size() != want.obs_size()) return differs("obs_size", got.obs_size(), want.obs_size());
  if (got.action_size() != want.action_size()) return differs("action_size", got.action_size(), want.action_size());
  if (got.discrete() != want.discrete()) return differs("discrete", got.discrete(), want.discrete());
  if (got.num_agents() != want.num_agents()) return differs("num_agents", got.num_agents(), want.num_agents());
  if (got.global_state_size() != want.global_state_size()) {
    return differs("global_state_size", got.global_state_size(), want.global_state_size());
  }
  return absl::OkStatus();
}

}  // namespace skein
