// SPDX-License-Identifier: Apache-2.0
// What the ticket office's tests share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learner/collect/ticket_office.h"
#include "tests/learner/connections.h"

namespace skein {

inline constexpr absl::Duration kNow = absl::ZeroDuration();

using Grants = std::vector<std::pair<ConnectionId, v1::Ticket>>;

// Tickets of `steps` steps for groups of `envs_per_group` environments.
inline TicketOffice MakeOffice(uint32_t share_envs, uint32_t envs_per_group, uint32_t steps, uint64_t first_ticket_id) {
  return TicketOffice(
      {.share_envs = share_envs, .envs_per_group = envs_per_group, .steps = steps, .first_ticket_id = first_ticket_id});
}

// Where the front begins; nullopt: not every group has a state.
inline std::optional<v1::Tensor> EnvState(const TicketOffice& office) {
  const auto state = office.groups().State();
  return state ? state->env_state : std::nullopt;
}

inline std::map<std::string, int> CountByActor(const Grants& grants) {
  std::map<std::string, int> counts;
  for (const auto& [actor, ticket] : grants) ++counts[actor.actor_id];
  return counts;
}

// A state of `rows` environments with these bytes.
inline TicketState State(const std::string& bytes, int64_t rows) {
  v1::Tensor state;
  state.set_name("env_state");
  state.set_dtype(v1::DATA_TYPE_FLOAT64);
  state.add_shape(rows);
  state.add_shape(static_cast<int64_t>(bytes.size()) / 8 / rows);
  state.set_data(bytes);
  return {.env_state = std::move(state)};
}

}  // namespace skein
