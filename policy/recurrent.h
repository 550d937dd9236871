// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/layer_stack.h"
#include "policy/packed_layer.h"
#include "policy/policy.h"

namespace skein {

// A policy with memory: observation -> normaliser -> cell -> hidden layers -> head. The cell is PyTorch's GRUCell or
// LSTMCell (torch.nn documentation), with the gates in its order:
//   GRU, state h:     r = sigma(W_ir x + b_ir + W_hr h + b_hr)        z = sigma(W_iz x + b_iz + W_hz h + b_hz)
//                     n = tanh(W_in x + b_in + r (W_hn h + b_hn))     h' = (1 - z) n + z h
//   LSTM, state h, c: i, f, o = sigma(W_i. x + b_i. + W_h. h + b_h.)  g = tanh(W_ig x + b_ig + W_hg h + b_hg)
//                     c' = f c + i g                                  h' = o tanh(c')
// What the hidden layers read is h'.
class Recurrent final : public Policy {
 public:
  // `cell`: weight_ih, weight_hh, bias_ih, bias_hh; gates r, z, n or i, f, g, o stacked along the first dimension.
  // `layers`: as LayerStack.
  Recurrent(uint64_t version, const PolicySpec& spec, absl::Span<const std::vector<float>> cell,
            absl::Span<const std::vector<float>> layers, std::vector<float> log_std, Normalization normalization);

  void Act(const float* obs, const float* state, int64_t rows, float* head, float* next_state) const override;

 private:
  // Each gate is packed as Padded(H) outputs, so that none begins in the middle of a vector.
  static PackedLayer PackGates(int64_t gates, int64_t inputs, int64_t size, const std::vector<float>& weight,
                               const std::vector<float>& bias);

  const PackedLayer from_input_;  // [G Padded(H), O]
  const PackedLayer from_state_;  // [G Padded(H), H]
  const LayerStack layers_;
};

}  // namespace skein
