// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "skein/v1/tensor.pb.h"

namespace skein {

// What goes from one fragment of environments to the next, so that any actor can go on with them.
//   Ticket -> Runner -> fragment -> TicketOffice -> Ticket; between runs in a checkpoint
// Both tensors have one row for each environment: of an env group in a ticket, of a learner's share or of the whole run
// elsewhere. A plain value.
struct TicketState {
  std::optional<v1::Tensor> env_state;  // float64 [envs, S]; absent: the environments begin episode 0.
  std::optional<v1::Tensor>
      policy_state;  // float32 [envs, A, P]; absent: the policy has no memory, or begins with zeros.

  bool empty() const { return !env_state && !policy_state; }
};

// Rows [first, first + count). REQUIRES: there are so many.
TicketState Rows(const TicketState& all, uint32_t first, uint32_t count);
// The rows of `parts`, one after the other. A tensor that one of them lacks is absent.
TicketState Join(const std::vector<const TicketState*>& parts);

}  // namespace skein
