// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/posthumous_reward.h"

#include <torch/types.h>

namespace skein {

torch::Tensor CreditPosthumously(const torch::Tensor& reward, const torch::Tensor& active, double gamma) {
  torch::Tensor credited = reward.clone();
  for (int64_t t = reward.size(0) - 2; t >= 0; --t) {
    credited[t].add_(credited[t + 1].masked_fill(active[t + 1], 0), gamma);
  }
  return credited;
}

}  // namespace skein
