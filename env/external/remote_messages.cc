// SPDX-License-Identifier: Apache-2.0
#include "env/external/remote_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

using env::v1::Reply;

// A field of Reply and the column that it carries.
struct ReplyPart {
  const char* name;
  const std::string& (Reply::*get)() const;
  std::string* (Reply::*mutate)();
  void* column;
  size_t row_bytes;
};

std::array<ReplyPart, 10> PartsOf(const WorldColumns& columns, const WorldRow& row) {
  return {{
      {"observation", &Reply::observation, &Reply::mutable_observation, columns.observation, 4 * row.observation},
      {"reward", &Reply::reward, &Reply::mutable_reward, columns.reward, 4 * row.agents},
      {"terminated", &Reply::terminated, &Reply::mutable_terminated, columns.terminated, 1},
      {"truncated", &Reply::truncated, &Reply::mutable_truncated, columns.truncated, 1},
      {"active", &Reply::active, &Reply::mutable_active, columns.active, row.agents},
      {"final_observation", &Reply::final_observation, &Reply::mutable_final_observation, columns.final_observation,
       4 * row.observation},
      {"global_state", &Reply::global_state, &Reply::mutable_global_state, columns.global_state, 4 * row.global_state},
      {"final_global_state", &Reply::final_global_state, &Reply::mutable_final_global_state, columns.final_global_state,
       4 * row.global_state},
      {"episode_metrics", &Reply::episode_metrics, &Reply::mutable_episode_metrics, columns.episode_metrics,
       4 * row.metrics},
      {"failed", &Reply::failed, &Reply::mutable_failed, columns.failed, 1},
  }};
}

absl::Status TakeColumn(const char* name, const std::string& bytes, void* column, size_t size) {
  if (bytes.size() != size) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", bytes.size(), " bytes, want ", size));
  }
  std::memcpy(column, bytes.data(), size);
  return absl::OkStatus();
}

// Environments rely on it: an actor clips its actions before it sends them.
absl::Status CheckActions(const EnvSpec& spec, size_t count, const float* action) {
  const auto width = static_cast<size_t>(spec.discrete ? 1 : spec.action_size);
  const size_t numbers = count * static_cast<size_t>(spec.num_agents) * width;
  for (size_t i = 0; i < numbers; ++i) {
    const float low = spec.discrete ? 0 : spec.action_low[i % width];
    const float high = spec.discrete ? static_cast<float>(spec.action_size - 1) : spec.action_high[i % width];
    const bool whole = !spec.discrete || action[i] == std::floor(action[i]);
    if (action[i] >= low && action[i] <= high && whole) continue;  // NaN fails.
    return absl::InvalidArgumentError(absl::StrCat("number ", i, " of action is ", action[i], ", want ",
                                                   spec.discrete ? "a whole one " : "one ", "from ", low, " to ",
                                                   high));
  }
  return absl::OkStatus();
}

absl::Status CheckSeeds(size_t count, const uint32_t* seeds) {
  constexpr uint32_t kBound = uint32_t{1} << 31;
  const uint32_t* const bad = std::find_if(seeds, seeds + count, [](uint32_t seed) { return seed >= kBound; });
  if (bad == seeds + count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("seed ", bad - seeds, " is ", *bad, ", want one under ", kBound));
}

}  // namespace

absl::StatusOr<WorldRequest> TakeRequest(const env::v1::ClientMessage& message, const EnvSpec& spec, size_t count,
                                         const WorldColumns& columns) {
  if (message.has_step()) {
    const env::v1::Step& step = message.step();
    const size_t action_bytes = count * WorldRow(spec).action * sizeof(float);
    if (absl::Status status = TakeColumn("action", step.action(), columns.action, action_bytes); !status.ok()) {
      return status;
    }
    absl::Status status = TakeColumn("next_seed", step.next_seed(), columns.seed, count * sizeof(uint32_t));
    if (status.ok()) status = CheckActions(spec, count, columns.action);
    if (status.ok()) status = CheckSeeds(count, columns.seed);
    if (!status.ok()) return status;
    return WorldRequest::kStep;
  }
  if (message.has_reset()) {
    const env::v1::Reset& reset = message.reset();
    if (absl::Status status = TakeColumn("mask", reset.mask(), columns.mask, count); !status.ok()) return status;
    absl::Status status = TakeColumn("seed", reset.seed(), columns.seed, count * sizeof(uint32_t));
    if (status.ok()) status = CheckSeeds(count, columns.seed);
    if (!status.ok()) return status;
    if (std::any_of(columns.mask, columns.mask + count, [](uint8_t one) { return one > 1; })) {
      return absl::InvalidArgumentError("mask has a byte that is neither 0 nor 1");
    }
    return WorldRequest::kReset;
  }
  return absl::InvalidArgumentError("a message that is neither step nor reset");
}

void PutReply(const WorldColumns& columns, const EnvSpec& spec, size_t count, Reply* reply) {
  for (const ReplyPart& part : PartsOf(columns, WorldRow(spec))) {
    if (part.row_bytes == 0) continue;
    (reply->*part.mutate)()->assign(static_cast<const char*>(part.column), count * part.row_bytes);
  }
}

size_t ReplyBytes(const EnvSpec& spec, size_t count) {
  size_t bytes = 0;
  for (const ReplyPart& part : PartsOf({}, WorldRow(spec))) bytes += count * part.row_bytes;
  return bytes;
}

absl::Status TakeReply(const Reply& reply, const EnvSpec& spec, size_t count, WorldRequest request,
                       const WorldColumns& columns) {
  const auto parts = PartsOf(columns, WorldRow(spec));
  for (const ReplyPart& part : parts) {
    const size_t got = (reply.*part.get)().size();
    if (got == count * part.row_bytes) continue;
    return absl::DataLossError(absl::StrCat("its server's ", part.name, " has ", got, " bytes, want ",
                                            count * part.row_bytes, " for ", count, " environments"));
  }
  for (const ReplyPart& part : parts) {
    const std::string& bytes = (reply.*part.get)();
    char* const column = static_cast<char*>(part.column);
    if (request == WorldRequest::kStep) {
      if (!bytes.empty()) std::memcpy(column, bytes.data(), bytes.size());
      continue;
    }
    for (size_t e = 0; e < count; ++e) {
      if (columns.mask[e] == 0 || part.row_bytes == 0) continue;
      std::memcpy(column + e * part.row_bytes, bytes.data() + e * part.row_bytes, part.row_bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace skein
