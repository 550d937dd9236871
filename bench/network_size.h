// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "env/env.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Number of learned parameters of policy and value function.
int64_t CountParameters(const v1::ModelConfig& model, const EnvSpec& spec);

// Sets all hidden layers of `model` (two if it has none) to the one width with which the networks come closest to
// `parameters`; from 256 on to the nearest multiple of 8, as the matrix units of GPUs want it.
void FitHiddenLayers(int64_t parameters, const EnvSpec& spec, v1::ModelConfig* model);

}  // namespace skein
