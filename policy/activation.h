// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace skein {

// The activation function after each hidden layer. ELU with alpha 1: x where x > 0, else exp(x) - 1.
enum class ActivationKind { kTanh, kElu, kRelu };

}  // namespace skein
