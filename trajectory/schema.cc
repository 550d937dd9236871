// SPDX-License-Identifier: Apache-2.0
#include "trajectory/schema.h"

#include <algorithm>

#include "base/number/tensor_packing.h"

namespace skein {

int Schema::Find(absl::string_view name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [name](const Field& field) { return field.name == name; });
  return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
}

int64_t Schema::Rows(const Field& field, const FragmentCounts& counts) const {
  switch (field.extent) {
    case Extent::kStep:
      return shape.steps;
    case Extent::kStepAndLast:
      return shape.steps + 1;
    case Extent::kFragment:
      return shape.group_envs;
    case Extent::kTruncation:
      return counts.truncations;
    case Extent::kEpisode:
      return counts.episodes;
    case Extent::kDirection:
      return shape.group_envs;
    case Extent::kOnce:
      return 1;
  }
  return 0;
}

int64_t Schema::RowElements(const Field& field) const {
  return field.elements() * (field.per_agent ? num_agents() : 1) * (field.of_steps() ? shape.group_envs : 1);
}

std::vector<int64_t> Schema::Dimensions(const Field& field, const FragmentCounts& counts) const {
  std::vector<int64_t> dimensions = {Rows(field, counts)};
  if (field.of_steps()) dimensions.push_back(shape.group_envs);
  if (field.per_agent) dimensions.push_back(num_agents());
  if (field.width > 0) dimensions.push_back(field.width);
  return dimensions;
}

int64_t Schema::WireBytes(const Field& field, const FragmentCounts& counts) const {
  return Rows(field, counts) * RowElements(field) * ElementSize(WireType(field));
}

const std::vector<std::string>& AlgorithmFieldNames() {
  static const auto* const names = new std::vector<std::string>{"log_prob"};
  return *names;
}

namespace {

std::vector<Field> DirectionFields(const FragmentShape& shape) {
  constexpr v1::DataType kDouble = v1::DATA_TYPE_FLOAT64, kInt = v1::DATA_TYPE_INT64;
  std::vector<Field> fields = {{"return_plus", kDouble, Extent::kDirection, false, 0, Bound::kAny, false},
                               {"return_minus", kDouble, Extent::kDirection, false, 0, Bound::kAny, false},
                               {"steps_plus", kInt, Extent::kDirection, false, 0, Bound::kAny, false},
                               {"steps_minus", kInt, Extent::kDirection, false, 0, Bound::kAny, false}};
  const int64_t words = 2 * shape.spec.obs_size();
  if (!shape.counts_observations) return fields;
  fields.push_back({"obs_sum", kInt, Extent::kOnce, false, words, Bound::kAny, false});
  fields.push_back({"obs_square_sum", kInt, Extent::kOnce, false, words, Bound::kAny, false});
  return fields;
}

}  // namespace

Schema MakeSchema(const FragmentShape& shape) {
  if (shape.of_directions()) return {.shape = shape, .fields = DirectionFields(shape)};
  constexpr v1::DataType kFloat = v1::DATA_TYPE_FLOAT32, kDouble = v1::DATA_TYPE_FLOAT64;
  constexpr v1::DataType kInt = v1::DATA_TYPE_INT64, kByte = v1::DATA_TYPE_UINT8;
  const v1::EnvSpecInfo& spec = shape.spec;
  const int64_t O = spec.obs_size(), D = spec.action_size(), G = spec.global_state_size();
  const int64_t P = spec.episode_metrics_size();
  Schema schema{.shape = shape, .fields = {}};
  const auto add = [&schema](bool is_there, const Field& field) {
    if (is_there) schema.fields.push_back(field);
  };
  const auto wanted = [&shape](absl::string_view name) {
    return std::count(shape.algorithm_fields.begin(), shape.algorithm_fields.end(), name) > 0;
  };
  // name, type, extent, per agent, width, bound, observed
  add(true, {"obs", kFloat, Extent::kStepAndLast, true, O, Bound::kNumber, true});
  add(!spec.discrete(), {"action", kFloat, Extent::kStep, true, D, Bound::kNumber, false});
  add(spec.discrete(), {"action", kInt, Extent::kStep, true, 0, Bound::kChoice, false});
  add(wanted("log_prob"), {"log_prob", kFloat, Extent::kStep, true, 0, Bound::kNumber, false});
  add(true, {"reward", kFloat, Extent::kStep, true, 0, Bound::kNumber, false});
  add(true, {"terminated", kByte, Extent::kStep, false, 0, Bound::kFlag, false});
  add(true, {"truncated", kByte, Extent::kStep, false, 0, Bound::kFlag, false});
  add(G > 0, {"state", kFloat, Extent::kStepAndLast, false, G, Bound::kNumber, true});
  add(spec.num_agents() > 1, {"active", kByte, Extent::kStep, true, 0, Bound::kFlag, false});
  add(spec.num_agents() > 1, {"agent_terminated", kByte, Extent::kStep, true, 0, Bound::kFlag, false});
  add(shape.env_state_size > 0,
      {"env_state", kDouble, Extent::kFragment, false, shape.env_state_size, Bound::kFinite, false});
  add(shape.policy_state_size > 0,
      {"policy_state", kFloat, Extent::kFragment, true, shape.policy_state_size, Bound::kFinite, false});
  add(true, {"final_obs", kFloat, Extent::kTruncation, true, O, Bound::kNumber, true});
  add(G > 0, {"final_state", kFloat, Extent::kTruncation, false, G, Bound::kNumber, true});
  add(P > 0, {"episode_metrics", kFloat, Extent::kEpisode, false, P, Bound::kEpisode, false});
  add(true, {"episode_return", kFloat, Extent::kEpisode, false, 0, Bound::kEpisode, false});
  add(true, {"episode_length", kInt, Extent::kEpisode, false, 0, Bound::kLength, false});
  std::stable_partition(schema.fields.begin(), schema.fields.end(), [](const Field& field) {
    return field.extent != Extent::kTruncation && field.extent != Extent::kEpisode;
  });
  return schema;
}

}  // namespace skein
