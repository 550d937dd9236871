// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "skein/v1/learner_service.pb.h"
#include "skein/v1/tensor.pb.h"

// The only definition of the fields of a trajectory fragment.
//   MakeSchema -> RolloutBuilder, frame, admission, staging, batch: each iterates over the fields
// A new field is one line in MakeSchema, plus the code that produces its values and the code that consumes them.
// CONTRIBUTING.md names the other places that some fields need, such as AlgorithmFieldNames and mode on_device.
namespace skein {

// How many rows a field has.
enum class Extent {
  kStep,         // T: one for each step.
  kStepAndLast,  // T + 1: one before each step and one after the last.
  kFragment,     // E: one for each environment of the group, after the last step.
  kTruncation,   // K: one for each episode that its time limit ended, ordered by (step, environment).
  kEpisode,      // J: one for each episode that ended and did not fail, ordered by (step, environment).
  kDirection,    // E: one for each direction of a work order.
  kOnce,         // 1.
};

// The range that the learner requires of each element; base/number/number_bounds.h has the limits.
enum class Bound {
  kNumber,   // float32: a magnitude of at most kNumberBound.
  kEpisode,  // float32: a magnitude of at most kEpisodeBound.
  kFinite,   // float32 or float64: not infinite and not NaN.
  kChoice,   // int64: the index of one of the environment's actions.
  kLength,   // int64: steps that an episode can have.
  kFlag,     // uint8: 0 or 1.
  kAny,      // No bound.
};

struct Field {
  std::string name;
  v1::DataType dtype = v1::DATA_TYPE_FLOAT32;
  Extent extent = Extent::kStep;
  bool per_agent = false;  // Whether each agent has elements of its own.
  int64_t width = 0;       // Elements of one environment or agent; 0 = one, without a dimension of its own.
  Bound bound = Bound::kNumber;
  bool observed = false;  // float32 that is sent as bfloat16 if the run's precision is bf16.

  int64_t elements() const { return width > 0 ? width : 1; }
  bool of_steps() const { return extent == Extent::kStep || extent == Extent::kStepAndLast; }
};

// Sizes of all fragments of a run.
struct FragmentShape {
  int64_t steps = 0;              // T
  int64_t group_envs = 0;         // E, environments of one group.
  int64_t env_state_size = 0;     // Doubles of one environment's saved state.
  int64_t policy_state_size = 0;  // Floats of one agent's policy state; 0 = the policy has no memory.
  int64_t max_episode_steps = 0;  // 0 = no limit.
  v1::EnvSpecInfo spec;
  v1::DataType obs_dtype = v1::DATA_TYPE_FLOAT32;  // Type in which observed fields are sent; or bfloat16.
  // Those of AlgorithmFieldNames that the run's algorithm reads (AlgorithmFacts in config.proto).
  std::vector<std::string> algorithm_fields;
  // Where the work is directions: episodes for each direction and sign, each of at most max_episode_steps; 0 = it is
  // steps. E is then the directions of an order and T is 1.
  int64_t direction_episodes = 0;
  bool counts_observations = false;  // Of directions: a fragment has sums of its observations.

  bool of_directions() const { return direction_episodes > 0; }
  // Env steps of a fragment; of directions the most that it can have.
  int64_t most_env_steps() const {
    return steps * group_envs * (of_directions() ? 2 * direction_episodes * max_episode_steps : 1);
  }
};

// Rows of the fields whose extent varies.
struct FragmentCounts {
  int64_t truncations = 0;  // K
  int64_t episodes = 0;     // J
};

// The fields of a fragment, in the order in which they are sent: those of varying extent come last. A value type.
struct Schema {
  FragmentShape shape;
  std::vector<Field> fields;

  int64_t num_agents() const { return shape.spec.num_agents(); }
  // Index of the field of that name; -1 = there is none.
  int Find(absl::string_view name) const;

  // Rows of a field, elements of one of its rows, and all its dimensions: [rows, E, A, width], without E unless
  // the field has rows for steps, without A unless it is per agent, without width if that is 0.
  int64_t Rows(const Field& field, const FragmentCounts& counts) const;
  int64_t RowElements(const Field& field) const;
  std::vector<int64_t> Dimensions(const Field& field, const FragmentCounts& counts) const;
  // Type and size of the field's elements as they are sent, before compression.
  v1::DataType WireType(const Field& field) const { return field.observed ? shape.obs_dtype : field.dtype; }
  int64_t WireBytes(const Field& field, const FragmentCounts& counts) const;
};

// The fields that a fragment has only if they are in FragmentShape::algorithm_fields. Each has a row for each step and
// elements for each agent: the samples of the algorithm's minibatches have it, too.
// log_prob: of the behaviour policy, for importance ratios.
const std::vector<std::string>& AlgorithmFieldNames();

// All fields of a fragment of that shape.
Schema MakeSchema(const FragmentShape& shape);

// Fields begin at multiples of this many bytes in a fragment's block.
inline constexpr int64_t kFieldAlignment = 8;
constexpr int64_t AlignField(int64_t bytes) {
  return (bytes + kFieldAlignment - 1) / kFieldAlignment * kFieldAlignment;
}

}  // namespace skein
