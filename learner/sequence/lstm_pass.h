// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "learner/sequence/net_layout.h"
#include "learner/sequence/sequence_batch.h"
#include "policy/aligned_floats.h"

// Forward and backward passes of NetLayout's model on the processor, without Torch: what depends on the step before is
// one matrix product of all rows for each step, and everything else one product of all steps. The products of the first
// layer's input are made once for each class instead of once for each step.
namespace skein {

// The parameters in the forms that passes read. Thread-safe for reading.
class NetWeights {
 public:
  explicit NetWeights(const NetLayout* layout);
  // `values`: [layout.size]; read in place by passes until the next call.
  void Update(const float* values);

 private:
  friend class LstmPass;
  const NetLayout& layout_;
  const float* values_ = nullptr;
  AlignedFloats class_gates_;                         // [classes, 4H]: W E[class] + b of the first layer.
  std::vector<AlignedFloats> input_t_, recurrent_t_;  // [in, 4H], [H, 4H].
  AlignedFloats output_t_;                            // [H, outputs].
};

// What a pass keeps between forward and backward. Not thread-safe; one for each thread. std::bad_alloc: no memory.
class LstmPass {
 public:
  explicit LstmPass(const NetLayout* layout) : layout_(*layout), layers_(layout->layers.size()) {}

  // Returns the sum of weight x -log p(target) over all places.
  double Forward(const NetWeights& weights, const PackedSteps& steps);
  // Adds the gradient of `scale` x the last Forward's sum to gradient[layout.size].
  void Backward(const NetWeights& weights, const PackedSteps& steps, float scale, float* gradient);

  // What Forward keeps for each place.
  static size_t BytesOfAPlace(const NetLayout& layout);

  // Of the last Forward: p of each class at a place, [classes].
  const float* probabilities(uint32_t place) const { return probabilities_.data() + place * layout_.outputs; }

 private:
  struct Layer {
    AlignedFloats gates;  // [places, 4H]: i, f, o after sigma, g after tanh. In Backward: the loss's derivative before.
    AlignedFloats cell;   // [places, H]
    AlignedFloats squashed;  // [places, H]: tanh(cell).
    AlignedFloats output;    // [places, H]
  };
  void ForwardLayer(const NetWeights& weights, const PackedSteps& steps, size_t layer);
  void BackwardLayer(const NetWeights& weights, const PackedSteps& steps, size_t layer, float* gradient);

  const NetLayout& layout_;
  std::vector<Layer> layers_;
  AlignedFloats probabilities_;  // [places, outputs]
  AlignedFloats delta_;          // [places, H]: derivative by a layer's output.
  AlignedFloats carried_, cell_carried_, earlier_, class_delta_;
};

}  // namespace skein
