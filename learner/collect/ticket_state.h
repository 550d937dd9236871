// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "skein/v1/tensor.pb.h"

namespace skein {

// The state that environments pass from one fragment to the next, so that any actor can continue them.
//   Ticket -> Runner -> fragment -> TicketOffice -> Ticket; between runs in a checkpoint
// Both tensors have one row for each environment: of an env group in a ticket, of a learner's share or of the whole run
// elsewhere. A plain value type.
struct TicketState {
  std::optional<v1::Tensor> env_state;  // float64 [envs, S]; absent: the environments begin episode 0.
  std::optional<v1::Tensor>
      policy_state;  // float32 [envs, A, S]; absent: the policy has no memory, or starts from zeros.

  bool empty() const { return !env_state && !policy_state; }
};

// Rows [first, first + count). REQUIRES: first + count <= rows.
TicketState Rows(const TicketState& all, uint32_t first, uint32_t count);
// The rows of `parts`, concatenated. A tensor that any part lacks is absent.
TicketState Join(const std::vector<const TicketState*>& parts);

}  // namespace skein
