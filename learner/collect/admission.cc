// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/admission.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/protocol.h"
#include "base/number/bfloat16.h"
#include "base/number/number_bounds.h"
#include "base/number/tensor_packing.h"
#include "base/telemetry/printable.h"
#include "learner/collect/direction_admission.h"

namespace skein {
namespace {

constexpr int64_t kCountLimit = int64_t{1} << 32;

// InvalidArgument "fields.<name>: <what>".
absl::Status FieldError(const Field& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("fields.", field.name, ": ", what));
}

// An unknown type, which a later version may have, by its number.
std::string NameOf(v1::DataType dtype) {
  const std::string& name = v1::DataType_Name(dtype);
  return name.empty() ? absl::StrCat("unknown (", static_cast<int>(dtype), ")") : name;
}

// Whether `value` is a whole number in [0, limit).
bool IsCount(double value, int64_t limit) {
  return value >= 0 && value < static_cast<double>(limit) && value == std::floor(value);
}

// The first of `count` values for which `good` does not hold; `count` if it holds for all.
template <typename Value, typename Good>
int64_t FindBad(const char* values, int64_t count, Good good) {
  const Value* const begin = reinterpret_cast<const Value*>(values);
  return std::find_if_not(begin, begin + count, good) - begin;
}

// A field whose values StagedColumns::Place checks while it copies them.
bool IsCheckedOnTheWay(const Field& field) { return field.of_steps() && field.bound != Bound::kFlag; }

// Locates the fields of one fragment in its block, in two passes: sizes, then values.
class Locator {
 public:
  Locator(const Frame& frame, const Schema& schema, CheckedFragment* checked)
      : header_(frame.header.fragment()), frame_(frame), schema_(schema), checked_(checked) {}

  // Checks that each field is present with the right size. Reads only the header.
  absl::Status CheckSizes() {
    const auto& heads = header_.fields();
    int64_t offset = 0;
    for (size_t i = 0; i < schema_.fields.size(); ++i) {
      const Field& field = schema_.fields[i];
      if (static_cast<int>(i) >= heads.size()) return FieldError(field, "missing");
      if (absl::Status s = CheckHead(field, heads[static_cast<int>(i)]); !s.ok()) return s;
      offset += AlignField(static_cast<int64_t>(heads[static_cast<int>(i)].bytes()));
    }
    if (heads.size() != static_cast<int>(schema_.fields.size())) {
      return absl::InvalidArgumentError(absl::StrCat("fields: got ", heads.size(), ", want ", schema_.fields.size()));
    }
    if (static_cast<int64_t>(frame_.block_bytes) == offset) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("fields: their block has ", frame_.block_bytes, " bytes, want ", offset));
  }

  // Locates each field's elements, and checks the values of the small fields. REQUIRES: CheckSizes() is OK.
  absl::Status Locate() {
    checked_->fields.resize(schema_.fields.size());
    PieceReader at = frame_.block;
    for (size_t i = 0; i < schema_.fields.size(); ++i) {
      const v1::FieldHead& head = header_.fields(static_cast<int>(i));
      if (absl::Status s = LocateField(schema_.fields[i], head, at, &checked_->fields[i]); !s.ok()) return s;
      at.Skip(static_cast<size_t>(AlignField(static_cast<int64_t>(head.bytes()))));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckHead(const Field& field, const v1::FieldHead& head) {
    if (head.name() != field.name) {
      return FieldError(field, absl::StrCat("missing; in its place is \"", Excerpt(head.name()), "\""));
    }
    const v1::DataType dtype = schema_.WireType(field);
    if (head.dtype() != dtype) {
      return FieldError(field, absl::StrCat("dtype is ", NameOf(head.dtype()), ", want ", v1::DataType_Name(dtype)));
    }
    const auto want = static_cast<uint64_t>(schema_.WireBytes(field, checked_->counts));
    switch (head.compression()) {
      case v1::COMPRESSION_UNSPECIFIED:
      case v1::COMPRESSION_NONE:
        if (head.bytes() != want) return FieldError(field, absl::StrCat("has ", head.bytes(), " bytes, want ", want));
        break;
      case v1::COMPRESSION_ZSTD:
        if (head.bytes() > want) {
          return FieldError(field, absl::StrCat("has ", head.bytes(), " bytes compressed, want at most ", want));
        }
        break;
      default:
        return FieldError(field,
                          absl::StrCat("compression is ", static_cast<int>(head.compression()), ", want none or zstd"));
    }
    const uint64_t plain = dtype == v1::DATA_TYPE_BFLOAT16 ? 2 * want : want;
    checked_->saved_bytes += plain - head.bytes();
    return absl::OkStatus();
  }

  absl::Status LocateField(const Field& field, const v1::FieldHead& head, PieceReader at,
                           CheckedFragment::Located* located) {
    const v1::DataType dtype = schema_.WireType(field);
    const auto bytes = static_cast<size_t>(schema_.WireBytes(field, checked_->counts));
    const bool compressed = head.compression() == v1::COMPRESSION_ZSTD;
    located->data = at;
    if (compressed) {
      CheckedFragment::Decompressed& content =
          *checked_->decompressed.emplace_back(std::make_unique<CheckedFragment::Decompressed>());
      if (absl::Status s = Unpack(field, head, at, bytes, &content.bytes); !s.ok()) return s;
      content.pieces = {content.bytes};
      located->data = PieceReader(content.pieces, 0);
    }
    if (IsCheckedOnTheWay(field)) return absl::OkStatus();
    PieceReader data = located->data;
    const int64_t count = static_cast<int64_t>(bytes) / ElementSize(dtype);
    if (dtype == field.dtype) {
      located->values.resize(bytes);
      data.Read(located->values.data(), bytes);
    } else {
      std::vector<uint16_t> narrow(static_cast<size_t>(count));
      data.Read(narrow.data(), bytes);
      located->values.resize(narrow.size() * sizeof(float));
      FromBfloat16(narrow.data(), narrow.size(), reinterpret_cast<float*>(located->values.data()));
    }
    return CheckValues(field, schema_.shape, located->values.data(), count);
  }

  static absl::Status Unpack(const Field& field, const v1::FieldHead& head, PieceReader at, size_t bytes,
                             std::string* to) {
    char begin[kFrameHeadBytes];
    const size_t size = std::min<size_t>(sizeof(begin), head.bytes());
    PieceReader(at).Read(begin, size);
    absl::Status s = CheckFrame({begin, size}, bytes);
    if (s.ok()) {
      std::string packed(head.bytes(), '\0');
      at.Read(packed.data(), packed.size());
      to->resize(bytes);
      s = Decompress(packed, head.dtype(), bytes, to->data());
    }
    return s.ok() ? s : FieldError(field, std::string(s.message()));
  }

  const v1::FragmentHeader& header_;
  const Frame& frame_;
  const Schema& schema_;
  CheckedFragment* const checked_;
};

// Checks the header's counts against the flags, and that each episode ended in one way. REQUIRES: flags are 0 or 1.
absl::Status CheckEnds(const CheckedFragment& checked, int64_t failed_episodes) {
  const auto terminated = checked.values<uint8_t>("terminated"), truncated = checked.values<uint8_t>("truncated");
  // Without branches: both are 0 for almost all steps.
  uint8_t both = 0;
  int64_t terminations = 0, truncations = 0;
  for (size_t i = 0; i < terminated.size(); ++i) {
    both |= terminated[i] & truncated[i];
    terminations += terminated[i];
    truncations += truncated[i];
  }
  for (size_t i = 0; both != 0; ++i) {
    if ((terminated[i] & truncated[i]) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("fields.terminated: element ", i, " is 1 and truncated is 1, want not both 1"));
  }
  const FragmentCounts& counts = checked.counts;
  const int64_t episodes = counts.episodes + failed_episodes;
  if (counts.truncations != truncations || episodes != terminations + truncations) {
    return absl::InvalidArgumentError(absl::StrCat("truncations, episodes: got ", counts.truncations, ", ", episodes,
                                                   ", the flags say ", truncations, ", ", terminations + truncations));
  }
  return absl::OkStatus();
}

// Checks several agents' flags: agents that ended were alive; all agents alive when the episode terminated have ended.
absl::Status CheckAgentFlags(const CheckedFragment& checked) {
  const auto active = checked.values<uint8_t>("active"), ended = checked.values<uint8_t>("agent_terminated");
  const auto terminated = checked.values<uint8_t>("terminated");
  const auto agents = static_cast<size_t>(checked.schema->num_agents());
  for (size_t i = 0; i < active.size(); ++i) {
    if (ended[i] > active[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("fields.agent_terminated: element ", i, " is 1 and active is 0, want 1 only of active ones"));
    }
    if (terminated[i / agents] && ended[i] != active[i]) {
      return absl::InvalidArgumentError(absl::StrCat("fields.agent_terminated: element ", i,
                                                     " is 0 of an active agent whose episode terminated, want 1"));
    }
  }
  return absl::OkStatus();
}

// Each row: episode, step, return so far, then the environment's own (see VectorEnv::SaveState).
absl::Status CheckEnvState(const CheckedFragment& checked) {
  const FragmentShape& shape = checked.schema->shape;
  const auto state = checked.values<double>("env_state");
  for (int64_t e = 0; e < shape.group_envs && shape.env_state_size >= 2; ++e) {
    const double* row = state.data() + e * shape.env_state_size;
    if (!IsCount(row[0], kCountLimit) ||
        !IsCount(row[1], shape.max_episode_steps > 0 ? shape.max_episode_steps : kCountLimit)) {
      return absl::InvalidArgumentError(absl::StrCat("fields.env_state: environment ", e, " is at episode ", row[0],
                                                     ", step ", row[1], ", want whole numbers >= 0 and a step below ",
                                                     shape.max_episode_steps, " (0 = no limit)"));
    }
  }
  return absl::OkStatus();
}

// The field as a ticket carries it; nullopt: the run has none.
std::optional<v1::Tensor> TensorOf(const CheckedFragment& checked, absl::string_view name) {
  const int i = checked.schema->Find(name);
  if (i < 0) return std::nullopt;
  v1::Tensor tensor;
  const Field& field = checked.schema->fields[static_cast<size_t>(i)];
  const std::vector<char>& values = checked.fields[static_cast<size_t>(i)].values;
  tensor.set_name(field.name);
  tensor.set_dtype(field.dtype);
  for (const int64_t extent : checked.schema->Dimensions(field, checked.counts)) tensor.add_shape(extent);
  tensor.set_data(values.data(), values.size());
  return tensor;
}

}  // namespace

float BoundOf(const Field& field) {
  switch (field.bound) {
    case Bound::kNumber:
      return kNumberBound;
    case Bound::kEpisode:
      return kEpisodeBound;
    default:
      return std::numeric_limits<float>::max();
  }
}

absl::Status BeyondError(const Field& field, int64_t element, float value) {
  return FieldError(field, std::isfinite(value) ? absl::StrCat("element ", element, " is ", value,
                                                               ", want magnitudes up to ", BoundOf(field))
                                                : absl::StrCat("element ", element, " is not finite"));
}

absl::Status CheckValues(const Field& field, const FragmentShape& shape, const char* values, int64_t count,
                         int64_t first) {
  int64_t bad = count;
  switch (field.bound) {
    case Bound::kFlag: {
      const auto* const flags = reinterpret_cast<const uint8_t*>(values);
      // Without branches first: all are right in almost all fragments.
      if (std::accumulate(flags, flags + count, uint8_t{0}, std::bit_or<uint8_t>()) <= 1) break;
      bad = FindBad<uint8_t>(values, count, [](uint8_t flag) { return flag <= 1; });
      return FieldError(field, absl::StrCat("element ", first + bad, " is ", int{flags[bad]}, ", want 0 or 1"));
    }
    case Bound::kChoice:
      bad = FindBad<int64_t>(
          values, count, [most = shape.spec.action_size()](int64_t choice) { return choice >= 0 && choice < most; });
      if (bad == count) break;
      return FieldError(field, absl::StrCat("element ", first + bad, " is no choice of this environment"));
    case Bound::kLength: {
      const int64_t most = shape.max_episode_steps > 0 ? shape.max_episode_steps : kCountLimit;
      bad = FindBad<int64_t>(values, count, [most](int64_t length) { return length >= 1 && length <= most; });
      if (bad == count) break;
      const int64_t got = reinterpret_cast<const int64_t*>(values)[bad];
      return FieldError(field, absl::StrCat("element ", first + bad, " is ", got, ", want 1 to ", most));
    }
    case Bound::kAny:
      break;
    case Bound::kNumber:
    case Bound::kEpisode:
    case Bound::kFinite:
      if (field.dtype == v1::DATA_TYPE_FLOAT64) {
        bad = FindBad<double>(values, count, [](double value) { return std::isfinite(value); });
        if (bad == count) break;
        return FieldError(field, absl::StrCat("element ", first + bad, " is not finite"));
      }
      const float* const floats = reinterpret_cast<const float*>(values);
      bad = static_cast<int64_t>(FindBeyond(floats, static_cast<size_t>(count), BoundOf(field)));
      if (bad == count) break;
      return BeyondError(field, first + bad, floats[bad]);
  }
  return absl::OkStatus();
}

absl::Status CheckFragment(const Frame& frame, const Schema& schema, CheckedFragment* checked) {
  const v1::FragmentHeader& header = frame.header.fragment();
  const int64_t T = schema.shape.steps, E = schema.shape.group_envs;
  if (header.steps() != T || header.group_envs() != E) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps x group_envs is ", header.steps(), " x ", header.group_envs(), ", want ", T, " x ", E));
  }
  const int64_t episodes = int64_t{header.episodes()} + header.failed_episodes();
  if (episodes > T * E || header.truncations() > episodes) {
    return absl::InvalidArgumentError(absl::StrCat("truncations, episodes: got ", header.truncations(), ", ", episodes,
                                                   ", want at most ", T * E, " episodes and no more truncations"));
  }
  if (header.failed_episodes() > header.truncations()) {
    return absl::InvalidArgumentError(absl::StrCat("failed_episodes: got ", header.failed_episodes(),
                                                   ", want at most the ", header.truncations(), " truncations"));
  }
  checked->schema = &schema;
  checked->counts = {.truncations = header.truncations(), .episodes = header.episodes()};
  Locator locator(frame, schema, checked);
  absl::Status s = locator.CheckSizes();
  if (s.ok()) s = locator.Locate();
  if (s.ok()) s = CheckEnds(*checked, header.failed_episodes());
  if (s.ok()) s = CheckAgentFlags(*checked);
  if (s.ok()) s = CheckEnvState(*checked);
  if (s.ok() && schema.shape.of_directions()) s = CheckDirections(*checked, header.env_steps());
  if (!s.ok()) return s;
  checked->state = {.env_state = TensorOf(*checked, "env_state"), .policy_state = TensorOf(*checked, "policy_state")};
  return absl::OkStatus();
}

absl::Status CheckProtocol(const v1::Hello& hello) {
  if (hello.protocol_major() == kProtocolMajor) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("protocol ", hello.protocol_major(), ".", hello.protocol_minor(),
                                                    " of the actor and ", kProtocolMajor, ".", kProtocolMinor,
                                                    " of the learner differ in their major version"));
}

absl::Status CheckEnvSpec(const v1::EnvSpecInfo& got, const v1::EnvSpecInfo& want) {
  // `tensor`: the first field of a fragment that differs because of it.
  const auto differs = [](const std::string& field, const auto& g, const auto& w, const std::string& tensor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "env_spec.", field, ": the actor has ", g, ", this run has ", w,
        tensor.empty() ? "" : absl::StrCat(", so field ", tensor, " differs"), "; start it from the same release"));
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
  if (got.relocatable() != want.relocatable()) {
    return differs("relocatable", got.relocatable(), want.relocatable(), "env_state");
  }
  const std::string metrics = absl::StrJoin(got.episode_metrics(), " ");
  const std::string want_metrics = absl::StrJoin(want.episode_metrics(), " ");
  if (metrics != want_metrics) return differs("episode_metrics", Excerpt(metrics), want_metrics, "episode_metrics");
  return absl::OkStatus();
}

}  // namespace skein
