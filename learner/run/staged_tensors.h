// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "learner/collect/batch_assembler.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/batch.h"

namespace skein {

// The staged columns as tensors that read them in place: `staged` must outlive them and not change. The result has
// flags as bool, which are copies. `global_state_size` G; 0: no state.
Batch MakeBatch(const StagedBatch& staged, const ActorCriticOptions& network, int64_t global_state_size);

}  // namespace skein
