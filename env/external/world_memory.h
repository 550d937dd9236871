// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "env/env.h"

// Memory layout of the numbers of E environments, the same on both sides of a shared memory.
//   a head of kWorldHeadBytes, then the columns in the order below, each at the next multiple of 64 bytes
// docs/environments.md describes it for servers in other languages; python/skein_env/columns.py and
// include/skein/env_server.h compute the same.
namespace skein {

// Counts of requests and answers, and which side sleeps. Words are 32 bits, at these offsets. Each is written by one
// side only, except for the sleeping flags: the side that sleeps sets its flag, either side clears it.
struct WorldHead {
  static constexpr uint32_t kMagic = 0x574e4b53;  // "SKNW"
  static constexpr uint32_t kVersion = 1;
  static constexpr size_t kMagicAt = 0, kVersionAt = 4;
  static constexpr size_t kRequestAt = 64, kKindAt = 68;  // Written by the client: the sequence, after the kind.
  static constexpr size_t kReplyAt = 128;                 // Written by the server: the sequence it has answered.
  static constexpr size_t kServerSleepsAt = 192;          // 1: the server waits for a byte on the socket.
  static constexpr size_t kClientSleepsAt = 256;
};
inline constexpr size_t kWorldHeadBytes = 320;

// kBare, for measurements: the first seed says how many steps the server takes by itself, of its environments in turn,
// in the loop that its language's users would write. Local worlds only.
enum class WorldRequest : uint32_t { kStep = 1, kReset = 2, kBare = 3 };

struct WorldColumns {
  float* action;              // [E, A, D] or [E, A, 1]
  uint32_t* seed;             // [E]
  uint8_t* mask;              // [E]
  float* observation;         // [E, A, O]
  float* reward;              // [E, A]
  uint8_t* terminated;        // [E]
  uint8_t* truncated;         // [E]
  uint8_t* failed;            // [E]
  uint8_t* active;            // [E, A]
  float* final_observation;   // [E, A, O]
  float* global_state;        // [E, G]
  float* final_global_state;  // [E, G]
  float* episode_metrics;     // [E, P]
};

// Numbers in one row of each column.
struct WorldRow {
  explicit WorldRow(const EnvSpec& spec)
      : agents(static_cast<size_t>(spec.num_agents)),
        action(agents * static_cast<size_t>(spec.discrete ? 1 : spec.action_size)),
        observation(agents * static_cast<size_t>(spec.obs_size)),
        global_state(static_cast<size_t>(spec.global_state_size)),
        metrics(spec.episode_metrics.size()) {}
  size_t agents, action, observation, global_state, metrics;
};

// Bytes of the whole memory; `columns` point into it. `base` may be null, for its size alone: they are null then.
inline size_t LayOutWorld(const EnvSpec& spec, size_t count, char* base, WorldColumns* columns) {
  const WorldRow row(spec);
  size_t at = kWorldHeadBytes;
  const auto take = [&](auto** column, size_t numbers) {
    using Number = std::remove_reference_t<decltype(**column)>;
    *column = base == nullptr ? nullptr : reinterpret_cast<Number*>(base + at);
    at = (at + count * numbers * sizeof(**column) + 63) / 64 * 64;
  };
  take(&columns->action, row.action);
  take(&columns->seed, 1);
  take(&columns->mask, 1);
  take(&columns->observation, row.observation);
  take(&columns->reward, row.agents);
  take(&columns->terminated, 1);
  take(&columns->truncated, 1);
  take(&columns->failed, 1);
  take(&columns->active, row.agents);
  take(&columns->final_observation, row.observation);
  take(&columns->global_state, row.global_state);
  take(&columns->final_global_state, row.global_state);
  take(&columns->episode_metrics, row.metrics);
  return at;
}

}  // namespace skein
