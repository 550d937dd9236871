// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/admission.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/number/bfloat16.h"
#include "base/number/number_bounds.h"
#include "base/number/tensor_packing.h"
#include "base/telemetry/printable.h"

namespace skein {
namespace {

constexpr int64_t kCountLimit = int64_t{1} << 32;

// Whether `value` is a whole number in [0, limit).
bool IsCount(double value, int64_t limit) {
  return value >= 0 && value < static_cast<double>(limit) && value == std::floor(value);
}

// A hostile shape may be long: no more of it is shown than a valid one has.
std::string ShapeText(absl::Span<const int64_t> shape) {
  constexpr size_t kShown = 8;
  return absl::StrCat("[", absl::StrJoin(shape.first(std::min(shape.size(), kShown)), ", "),
                      shape.size() > kShown ? ", ..." : "", "]");
}

// Finds tensors of one batch and checks them against what they must be.
class Finder {
 public:
  Finder(const WireBatch& batch, CheckedBatch* checked) : batch_(batch), checked_(checked) {}

  // Where its elements are, decompressed if need be.
  absl::Status Locate(const std::string& name, v1::DataType dtype, const std::vector<int64_t>& want,
                      PieceReader* data) {
    const WireTensor* tensor = nullptr;
    size_t bytes = 0;
    if (absl::Status s = Find(name, dtype, want, &tensor, &bytes); !s.ok()) return s;
    if (tensor->header.compression() != v1::COMPRESSION_ZSTD) {
      *data = tensor->data;
      return absl::OkStatus();
    }
    Decompressed& content = *checked_->decompressed.emplace_back(std::make_unique<Decompressed>());
    content.bytes.resize(bytes);
    content.pieces = {content.bytes};
    *data = PieceReader(content.pieces, 0);
    return Unpack(*tensor, bytes, content.bytes.data());
  }

  template <typename Value>
  absl::Status Copy(const std::string& name, v1::DataType dtype, const std::vector<int64_t>& want,
                    std::vector<Value>* values) {
    const WireTensor* tensor = nullptr;
    size_t bytes = 0;
    if (absl::Status s = Find(name, dtype, want, &tensor, &bytes); !s.ok()) return s;
    values->resize(bytes / sizeof(Value));
    if (tensor->header.compression() == v1::COMPRESSION_ZSTD) {
      return Unpack(*tensor, bytes, reinterpret_cast<char*>(values->data()));
    }
    PieceReader(tensor->data).Read(values->data(), bytes);
    return absl::OkStatus();
  }

  absl::Status CopyFloats(const std::string& name, v1::DataType dtype, const std::vector<int64_t>& want,
                          std::vector<float>* values, float bound = kNumberBound) {
    if (dtype == v1::DATA_TYPE_BFLOAT16) {
      std::vector<uint16_t> narrow;
      if (absl::Status s = Copy(name, dtype, want, &narrow); !s.ok()) return s;
      values->resize(narrow.size());
      FromBfloat16(narrow.data(), narrow.size(), values->data());
    } else if (absl::Status s = Copy(name, dtype, want, values); !s.ok()) {
      return s;
    }
    const size_t bad = FindBeyond(values->data(), values->size(), bound);
    return bad == values->size() ? absl::OkStatus() : BeyondError(name, bad, (*values)[bad], bound);
  }

 private:
  // The one tensor of that name, and how many bytes its elements have.
  absl::Status Find(const std::string& name, v1::DataType dtype, const std::vector<int64_t>& want,
                    const WireTensor** found, size_t* bytes) {
    const WireTensor* tensor = nullptr;
    for (const WireTensor& candidate : batch_.tensors) {
      if (candidate.header.name() != name) continue;
      if (tensor != nullptr) return TensorError(name, "given twice");
      tensor = &candidate;
    }
    if (tensor == nullptr) return TensorError(name, "missing");
    const v1::Tensor& header = tensor->header;
    if (header.dtype() != dtype) {
      return TensorError(
          name, absl::StrCat("dtype is ", v1::DataType_Name(header.dtype()), ", want ", v1::DataType_Name(dtype)));
    }
    bool fits = header.shape_size() == static_cast<int>(want.size());
    // Extents and product are kept under 2^31, so that the next product stays under 2^62.
    uint64_t elements = 1;
    for (int i = 0; fits && i < header.shape_size(); ++i) {
      const int64_t extent = header.shape(i);
      fits = extent >= 0 && extent == want[i] && static_cast<uint64_t>(extent) <= (uint64_t{1} << 31);
      if (fits) elements *= static_cast<uint64_t>(extent);
      fits = fits && elements <= (uint64_t{1} << 31);
    }
    if (!fits) {
      return TensorError(name, absl::StrCat("shape is ", ShapeText(header.shape()), ", want ", ShapeText(want)));
    }
    *bytes = elements * static_cast<size_t>(ElementSize(dtype));
    if (absl::Status s = CheckData(*tensor, *bytes); !s.ok()) return TensorError(name, std::string(s.message()));
    const size_t plain = dtype == v1::DATA_TYPE_BFLOAT16 ? 2 * *bytes : *bytes;
    checked_->saved_bytes += plain - std::min(plain, tensor->bytes);
    *found = tensor;
    return absl::OkStatus();
  }

  // Whether the data are, or say that they hold, so many bytes.
  static absl::Status CheckData(const WireTensor& tensor, size_t bytes) {
    switch (tensor.header.compression()) {
      case v1::COMPRESSION_UNSPECIFIED:
      case v1::COMPRESSION_NONE:
        if (tensor.bytes == bytes) return absl::OkStatus();
        return absl::InvalidArgumentError(
            absl::StrCat("has ", tensor.bytes, " bytes, its shape and dtype want ", bytes));
      case v1::COMPRESSION_ZSTD: {
        char head[kFrameHeadBytes];
        const size_t size = std::min(sizeof(head), tensor.bytes);
        PieceReader(tensor.data).Read(head, size);
        return CheckFrame({head, size}, bytes);
      }
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("compression is ", static_cast<int>(tensor.header.compression()), ", want none or zstd"));
    }
  }

  static absl::Status Unpack(const WireTensor& tensor, size_t bytes, char* to) {
    std::string frame(tensor.bytes, '\0');
    PieceReader(tensor.data).Read(frame.data(), frame.size());
    const absl::Status s = Decompress(frame, tensor.header.dtype(), bytes, to);
    return s.ok() ? s : TensorError(tensor.header.name(), std::string(s.message()));
  }

  const WireBatch& batch_;
  CheckedBatch* const checked_;
};

}  // namespace

absl::Status TensorError(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tensors.", name, ": ", what));
}

absl::Status BeyondError(const std::string& name, size_t element, float value, float bound) {
  return TensorError(name, std::isfinite(value)
                               ? absl::StrCat("element ", element, " is ", value, ", want magnitudes up to ", bound)
                               : absl::StrCat("element ", element, " is not finite"));
}

namespace {

// Of several agents: who ended took part, and whoever took part when the episode terminated has ended.
absl::Status CheckAgentFlags(const CheckedBatch& batch, int64_t agents) {
  for (size_t i = 0; i < batch.active.size(); ++i) {
    const uint8_t active = batch.active[i], ended = batch.agent_terminated[i];
    if (active > 1 || ended > active) {
      return TensorError("agent_terminated", absl::StrCat("element ", i, " is ", int{ended}, " and active is ",
                                                          int{active}, ", want 0 or 1 and 1 only of active ones"));
    }
    if (batch.terminated[i / agents] && ended != active) {
      return TensorError("agent_terminated",
                         absl::StrCat("element ", i, " is 0 of an active agent whose episode terminated, want 1"));
    }
  }
  return absl::OkStatus();
}

// How many environments' steps ended their episode, each in one way at most.
absl::Status CountEnds(const CheckedBatch& batch, int64_t* terminations, int64_t* truncations) {
  const uint8_t* const terminated = batch.terminated.data();
  const uint8_t* const truncated = batch.truncated.data();
  const size_t size = batch.terminated.size();
  // Without branches: both are 0 for almost all steps.
  uint8_t bits = 0, both = 0;
  *terminations = *truncations = 0;
  for (size_t i = 0; i < size; ++i) {
    bits |= terminated[i] | truncated[i];
    both |= terminated[i] & truncated[i];
    *terminations += terminated[i];
    *truncations += truncated[i];
  }
  for (size_t i = 0; bits > 1 || both != 0; ++i) {
    if (terminated[i] + truncated[i] <= 1) continue;
    return TensorError("terminated", absl::StrCat("element ", i, " is ", int{terminated[i]}, " and truncated is ",
                                                  int{truncated[i]}, ", want 0 or 1 and not both 1"));
  }
  return absl::OkStatus();
}

// Of finished episodes; `most` 0 = no limit.
absl::Status CheckLengths(const CheckedBatch& batch, int64_t most) {
  if (most <= 0) most = kCountLimit;
  for (size_t i = 0; i < batch.episode_length.size(); ++i) {
    const int64_t length = batch.episode_length[i];
    if (length < 1 || length > most) {
      return TensorError("episode_length", absl::StrCat("element ", i, " is ", length, ", want 1 to ", most));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBatch(const WireBatch& batch, const FragmentShape& shape, CheckedBatch* checked) {
  const int64_t T = shape.steps, E = shape.num_envs, A = shape.spec.num_agents(), O = shape.spec.obs_size();
  const int64_t G = shape.spec.global_state_size(), P = shape.spec.episode_metrics_size();
  if (batch.header.steps() != T || batch.header.num_envs() != E) {
    return absl::InvalidArgumentError(absl::StrCat("steps x num_envs is ", batch.header.steps(), " x ",
                                                   batch.header.num_envs(), ", want ", T, " x ", E));
  }
  Finder finder(batch, checked);
  constexpr v1::DataType kFloat = v1::DATA_TYPE_FLOAT32;
  PieceReader obs;
  absl::Status s = finder.Locate("obs", shape.obs_dtype, {T + 1, E, A, O}, &obs);
  checked->obs = FloatReader(obs, shape.obs_dtype == v1::DATA_TYPE_BFLOAT16);
  if (s.ok() && shape.spec.discrete()) {
    s = finder.Locate("action", v1::DATA_TYPE_INT64, {T, E, A, 1}, &checked->action);
  } else if (s.ok()) {
    s = finder.Locate("action", kFloat, {T, E, A, shape.spec.action_size()}, &checked->action);
  }
  if (s.ok()) s = finder.Locate("log_prob", kFloat, {T, E, A}, &checked->log_prob);
  if (s.ok()) s = finder.Locate("reward", kFloat, {T, E, A}, &checked->reward);
  if (s.ok()) s = finder.Copy("terminated", v1::DATA_TYPE_UINT8, {T, E}, &checked->terminated);
  if (s.ok()) s = finder.Copy("truncated", v1::DATA_TYPE_UINT8, {T, E}, &checked->truncated);
  if (s.ok() && G > 0) {
    PieceReader state;
    s = finder.Locate("state", shape.obs_dtype, {T + 1, E, G}, &state);
    checked->state = FloatReader(state, shape.obs_dtype == v1::DATA_TYPE_BFLOAT16);
  }
  if (s.ok() && A > 1) s = finder.Copy("active", v1::DATA_TYPE_UINT8, {T, E, A}, &checked->active);
  if (s.ok() && A > 1) s = finder.Copy("agent_terminated", v1::DATA_TYPE_UINT8, {T, E, A}, &checked->agent_terminated);
  if (!s.ok()) return s;
  int64_t terminations = 0, truncations = 0;
  if (s = CountEnds(*checked, &terminations, &truncations); !s.ok()) return s;
  const int64_t episodes = terminations + truncations;
  s = finder.CopyFloats("final_obs", shape.obs_dtype, {truncations, A, O}, &checked->final_obs);
  if (s.ok() && G > 0) s = finder.CopyFloats("final_state", shape.obs_dtype, {truncations, G}, &checked->final_state);
  if (s.ok() && P > 0)
    s = finder.CopyFloats("episode_metrics", kFloat, {episodes, P}, &checked->episode_metrics, kEpisodeBound);
  if (s.ok()) s = finder.CopyFloats("episode_return", kFloat, {episodes}, &checked->episode_return, kEpisodeBound);
  if (s.ok()) s = finder.Copy("episode_length", v1::DATA_TYPE_INT64, {episodes}, &checked->episode_length);
  if (s.ok()) s = CheckLengths(*checked, shape.max_episode_steps);
  if (s.ok()) s = CheckAgentFlags(*checked, A);
  std::vector<double> state;
  if (s.ok()) s = finder.Copy("env_state", v1::DATA_TYPE_FLOAT64, {E, shape.env_state_size}, &state);
  if (!s.ok()) return s;
  for (size_t i = 0; i < state.size(); ++i) {
    if (!std::isfinite(state[i])) return TensorError("env_state", absl::StrCat("element ", i, " is not finite"));
  }
  for (int64_t e = 0; e < E && shape.env_state_size >= 2; ++e) {
    // Row: episode, step, return so far, then the environment's own (see VectorEnv::SaveState).
    const double* row = state.data() + e * shape.env_state_size;
    if (!IsCount(row[0], kCountLimit) ||
        !IsCount(row[1], shape.max_episode_steps > 0 ? shape.max_episode_steps : kCountLimit)) {
      return TensorError("env_state", absl::StrCat("environment ", e, " is at episode ", row[0], ", step ", row[1],
                                                   ", want whole numbers >= 0 and a step below ",
                                                   shape.max_episode_steps, " (0 = no limit)"));
    }
  }
  checked->env_state.set_name("env_state");
  checked->env_state.set_dtype(v1::DATA_TYPE_FLOAT64);
  checked->env_state.add_shape(E);
  checked->env_state.add_shape(shape.env_state_size);
  checked->env_state.set_data(state.data(), state.size() * sizeof(double));
  return absl::OkStatus();
}

absl::Status CheckEnvSpec(const v1::EnvSpecInfo& got, const v1::EnvSpecInfo& want) {
  // `tensor`: the first of a batch that is another one for it.
  const auto differs = [](const std::string& field, const auto& g, const auto& w, const std::string& tensor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "env_spec.", field, ": the actor has ", g, ", this run has ", w,
        tensor.empty() ? "" : absl::StrCat(", so tensor ", tensor, " differs"), "; start it from the same release"));
  };
  if (got.env_id() != want.env_id()) return differs("env_id", Excerpt(got.env_id()), want.env_id(), "");
  if (got.obs_size() != want.obs_size()) return differs("obs_size", got.obs_size(), want.obs_size(), "obs");
  if (got.num_agents() != want.num_agents()) return differs("num_agents", got.num_agents(), want.num_agents(), "obs");
  if (got.action_size() != want.action_size()) {
    return differs("action_size", got.action_size(), want.action_size(), "action");
  }
  if (got.discrete() != want.discrete()) return differs("discrete", got.discrete(), want.discrete(), "action");
  if (got.global_state_size() != want.global_state_size()) {
    return differs("global_state_size", got.global_state_size(), want.global_state_size(), "state");
  }
  const std::string metrics = absl::StrJoin(got.episode_metrics(), " ");
  const std::string want_metrics = absl::StrJoin(want.episode_metrics(), " ");
  if (metrics != want_metrics) return differs("episode_metrics", Excerpt(metrics), want_metrics, "episode_metrics");
  return absl::OkStatus();
}

}  // namespace skein
